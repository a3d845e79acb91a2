"""Problems whose kinks stand in the program, with data drawn at random, and their forms for other solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[[Tensor], Any]


class Convex(NamedTuple):
    """A convex problem for cvxpy."""

    program: Callable[[Any, Any], tuple[Any, list[Any]]]
    """From cvxpy and a variable of the shape of x to the objective and the constraints."""


class Split(NamedTuple):
    """A problem for IPOPT, its kinks split by hand into variables and constraints."""

    variables: Callable[[Any], tuple[Any, Any, Any, Any]]
    """From casadi to the variables, the objective, what must be at least 0 and what must be 0."""
    start: Callable[[Tensor], Tensor]
    """Values of the variables for a start x."""


Problem = tuple[Function, Any] | tuple[Function, Any, Convex | Split]
PROBLEMS: dict[str, Callable[[], Problem]] = {}


def draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def problem(*sizes: Any) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Add a problem in several sizes; each draws its data from a generator of its own."""

    def add(build: Callable[..., Problem]) -> Callable[..., Problem]:
        for size in sizes:
            arguments = size if isinstance(size, tuple) else (size,)
            name = f"{build.__name__.replace('_', ' ')} {'x'.join(map(str, arguments))}"
            PROBLEMS[name.replace("pca", "PCA")] = lambda arguments=arguments: build(
                torch.Generator().manual_seed(len(build.__name__) + sum(arguments)), *arguments
            )
        return build

    return add


def regression(generator: torch.Generator, rows: int, n: int, *, outliers: float = 0.0) -> tuple[Tensor, Tensor]:
    """Data of a sparse linear model, some of the targets far off."""
    a, truth = draw(generator, rows, n), draw(generator, n) * (torch.rand(n, generator=generator) < 0.3)
    wrong = 10 * draw(generator, rows) * (torch.rand(rows, generator=generator) < outliers)
    return a, a @ truth + 0.1 * draw(generator, rows) + wrong


@problem(20, 50, 100)
def lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 2 * n, n)

    def function(x: Tensor) -> Any:
        return 0.5 * (a @ x - b).square().sum() + 0.2 * n * x.abs().sum()

    return (
        function,
        draw(generator, n),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(a.numpy() @ x - b.numpy()) + 0.2 * n * cp.norm1(x), [])),
    )


@problem(50)
def elastic_net(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n, n)

    def function(x: Tensor) -> Any:
        return 0.5 * (a @ x - b).square().sum() + 5 * x.abs().sum() + x @ x

    return (
        function,
        draw(generator, n),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(a.numpy() @ x - b.numpy()) + 5 * cp.norm1(x) + cp.sum_squares(x), [])),
    )


@problem(50)
def logistic_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 3 * n, n)
    labels = b.sign()

    def function(x: Tensor) -> Any:
        return functional.softplus(-labels * (a @ x)).sum() + 5 * x.abs().sum()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (cp.sum(cp.logistic(cp.multiply(-labels.numpy(), a.numpy() @ x))) + 5 * cp.norm1(x), [])),
    )


@problem(20, 50)
def robust_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 4 * n, n, outliers=0.1)

    def function(x: Tensor) -> Any:
        return functional.l1_loss(a @ x, b, reduction="sum") + 5 * x.abs().sum()

    return function, draw(generator, n), Convex(lambda cp, x: (cp.norm1(a.numpy() @ x - b.numpy()) + 5 * cp.norm1(x), []))


@problem(60)
def fused_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n, n)

    def function(x: Tensor) -> Any:
        return 0.5 * (a @ x - b).square().sum() + 2 * x.abs().sum() + 5 * x.diff().abs().sum()

    return (
        function,
        draw(generator, n),
        Convex(
            lambda cp, x: (0.5 * cp.sum_squares(a.numpy() @ x - b.numpy()) + 2 * cp.norm1(x) + 5 * cp.norm1(cp.diff(x)), [])
        ),
    )


@problem(40, 80, 200)
def total_variation(generator: torch.Generator, n: int) -> Problem:
    signal = (draw(generator, n) * (torch.rand(n, generator=generator) < 0.1)).cumsum(0) + 0.2 * draw(generator, n)

    def function(x: Tensor) -> Any:
        return 0.5 * (x - signal).square().sum() + 0.5 * x.diff().abs().sum()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(x - signal.numpy()) + 0.5 * cp.norm1(cp.diff(x)), [])),
    )


@problem((8, 8), (12, 12))
def total_variation_of_a_picture(generator: torch.Generator, height: int, width: int) -> Problem:
    picture = torch.zeros(height, width, dtype=torch.float64)
    picture[2:-2, 2:-2] = 1.0
    picture = picture + 0.2 * draw(generator, height, width)

    def function(x: Tensor) -> Tensor:
        return 0.5 * (x - picture).square().sum() + 0.2 * (x.diff(dim=0).abs().sum() + x.diff(dim=1).abs().sum())

    def program(cp: Any, x: Any) -> tuple[Any, list[Any]]:
        steps = cp.norm1(cp.vec(cp.diff(x, axis=0), order="C")) + cp.norm1(cp.vec(cp.diff(x, axis=1), order="C"))
        return 0.5 * cp.sum_squares(x - picture.numpy()) + 0.2 * steps, []

    return function, torch.zeros(height, width, dtype=torch.float64), Convex(program)


@problem(60)
def trend_filter(generator: torch.Generator, n: int) -> Problem:
    signal = torch.linspace(-1, 1, n, dtype=torch.float64).abs() + 0.1 * draw(generator, n)

    def function(x: Tensor) -> Any:
        return 0.5 * (x - signal).square().sum() + x.diff(n=2).abs().sum()

    return (
        function,
        signal.clone(),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(x - signal.numpy()) + cp.norm1(cp.diff(x, 2)), [])),
    )


@problem(10, 30, 100)
def least_absolute_deviations(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n, outliers=0.2)

    def function(x: Tensor) -> Any:
        return (a @ x - b).abs().mean()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (cp.norm1(a.numpy() @ x - b.numpy()) / len(b), [])),
    )


@problem(10, 30)
def quantile_regression(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)

    def function(x: Tensor) -> Any:
        return torch.maximum(0.9 * (b - a @ x), -0.1 * (b - a @ x)).mean()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(
            lambda cp, x: (
                cp.sum(cp.maximum(0.9 * (b.numpy() - a.numpy() @ x), 0.1 * (a.numpy() @ x - b.numpy()))) / len(b),
                [],
            )
        ),
    )


@problem(10, 40, 100)
def support_vector_machine(generator: torch.Generator, n: int) -> Problem:
    points, labels = draw(generator, 6 * n, n), draw(generator, 6 * n).sign()

    def function(x: Tensor) -> Any:
        return 0.5 * x @ x + torch.relu(1 - labels * (points @ x)).sum()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(
            lambda cp, x: (0.5 * cp.sum_squares(x) + cp.sum(cp.pos(1 - cp.multiply(labels.numpy(), points.numpy() @ x))), [])
        ),
    )


@problem(10)
def support_vector_regression(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)

    def function(x: Tensor) -> Any:
        return 0.5 * x @ x + ((a @ x - b).abs() - 0.2).clamp(min=0).sum()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(x) + cp.sum(cp.pos(cp.abs(a.numpy() @ x - b.numpy()) - 0.2)), [])),
    )


@problem((20, 1), (40, 1), (40, 3))
def sparse_pca(generator: torch.Generator, n: int, components: int) -> Problem:
    data = draw(generator, 60, n)
    covariance, eye = data.T @ data / 60, torch.eye(components, dtype=torch.float64)

    def function(v: Tensor) -> Any:
        return -(v * (covariance @ v)).sum() + 0.5 * v.abs().sum(), None, v.T @ v - eye

    def split(ca: Any) -> tuple[Any, Any, Any, Any]:
        plus, minus = ca.SX.sym("plus", n, components), ca.SX.sym("minus", n, components)
        x = plus - minus
        both = ca.vertcat(ca.vec(plus), ca.vec(minus))
        value = -ca.sum2(ca.sum1(x * (covariance.numpy() @ x))) + 0.5 * ca.sum1(both)
        gram = x.T @ x - ca.DM.eye(components)
        return both, value, both, ca.vertcat(*(gram[i, j] for i in range(components) for j in range(i, components)))

    def start(x: Tensor) -> Tensor:
        return torch.cat([x.T.clamp(min=0).reshape(-1), (-x.T).clamp(min=0).reshape(-1)])

    return function, torch.linalg.qr(draw(generator, n, components))[0], Split(split, start)


@problem(10, 20)
def dictionary_learning(generator: torch.Generator, n: int) -> Problem:
    codes = draw(generator, n, 4 * n) * (torch.rand(n, 4 * n, generator=generator) < 0.2)
    start = draw(generator, n)

    def function(q: Tensor) -> Any:
        return (q @ codes).abs().mean(), None, q @ q - 1

    def split(ca: Any) -> tuple[Any, Any, Any, Any]:
        q, above = ca.SX.sym("q", n), ca.SX.sym("above", 4 * n)
        along = codes.T.numpy() @ q
        return ca.vertcat(q, above), ca.sum1(above) / (4 * n), ca.vertcat(above - along, above + along), ca.dot(q, q) - 1

    return function, start / start.norm(), Split(split, lambda q: torch.cat([q, (q @ codes).abs()]))


@problem(20)
def basis_pursuit(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n // 2, n)

    def function(x: Tensor) -> Any:
        return (x.abs().sum(), None, a @ x - b)

    return function, draw(generator, n), Convex(lambda cp, x: (cp.norm1(x), [a.numpy() @ x == b.numpy()]))


@problem(8, 16)
def minimax_filter(generator: torch.Generator, n: int) -> Problem:
    grid = torch.linspace(0, 1, 8 * n, dtype=torch.float64)
    keep = (grid < 0.4) | (grid > 0.55)
    waves, wanted = torch.cos(math.pi * torch.outer(grid[keep], torch.arange(n))), (grid[keep] < 0.4).double()

    def function(x: Tensor) -> Any:
        return (waves @ x - wanted).abs().max()

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (cp.norm_inf(waves.numpy() @ x - wanted.numpy()), [])),
    )


@problem(10)
def chebyshev_approximation(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)

    def function(x: Tensor) -> Any:
        return torch.linalg.vector_norm(a @ x - b, torch.inf)

    return function, draw(generator, n), Convex(lambda cp, x: (cp.norm_inf(a.numpy() @ x - b.numpy()), []))


@problem((8, 8))
def sparse_part_of_a_matrix(generator: torch.Generator, rows: int, columns: int) -> Problem:
    low = torch.outer(draw(generator, rows), draw(generator, columns))
    mixed = low + 5 * draw(generator, rows, columns) * (torch.rand(rows, columns, generator=generator) < 0.1)

    def function(v: dict[str, Tensor]) -> Tensor:
        return (mixed - torch.outer(v["left"], v["right"])).abs().sum() + 0.01 * (
            v["left"] @ v["left"] + v["right"] @ v["right"]
        )

    return function, {"left": draw(generator, rows), "right": draw(generator, columns)}  # type: ignore[return-value]


@problem(4)
def network_with_l1_loss(generator: torch.Generator, hidden: int) -> Problem:
    inputs = draw(generator, 40, 2)
    target = torch.relu(inputs @ draw(generator, 2, hidden)) @ draw(generator, hidden)

    def function(v: dict[str, Tensor]) -> Tensor:
        outputs = torch.relu(inputs @ v["first"]) @ v["second"]
        weights = v["first"].square().sum() + v["second"].square().sum()
        return (outputs - target).abs().mean() + 1e-3 * weights

    return function, {"first": draw(generator, 2, hidden), "second": draw(generator, hidden)}  # type: ignore[return-value]


@problem(10, 30)
def max_of_quadratics(generator: torch.Generator, n: int) -> Problem:
    roots, slopes = draw(generator, 10, n, n), draw(generator, 10, n)
    matrices = roots @ roots.transpose(1, 2) / n

    def values(x: Tensor) -> Tensor:
        return 0.5 * torch.einsum("i,kij,j->k", x, matrices, x) + slopes @ x

    def split(ca: Any) -> tuple[Any, Any, Any, Any]:
        x, above = ca.SX.sym("x", n), ca.SX.sym("above")
        below = [
            0.5 * x.T @ matrix @ x + ca.dot(slope, x) for matrix, slope in zip(matrices.numpy(), slopes.numpy(), strict=True)
        ]
        return ca.vertcat(x, above), above, ca.vertcat(*(above - value for value in below)), ca.SX(0, 1)

    return lambda x: values(x).max(), draw(generator, n), Split(split, lambda x: torch.cat([x, values(x).max()[None]]))


@problem(10, 20)
def phase_retrieval(generator: torch.Generator, n: int) -> Problem:
    a, truth = draw(generator, 6 * n, n), draw(generator, n)
    wanted = (a @ truth).square()

    def split(ca: Any) -> tuple[Any, Any, Any, Any]:
        x, above = ca.SX.sym("x", n), ca.SX.sym("above", 6 * n)
        residual = (a.numpy() @ x) ** 2 - wanted.numpy()
        return ca.vertcat(x, above), ca.sum1(above) / (6 * n), ca.vertcat(above - residual, above + residual), ca.SX(0, 1)

    def function(x: Tensor) -> Tensor:
        return ((a @ x).square() - wanted).abs().mean()

    def start(x: Tensor) -> Tensor:
        return torch.cat([x, ((a @ x).square() - wanted).abs()])

    return function, truth + 0.3 * draw(generator, n), Split(split, start)


@problem(30)
def portfolio_with_costs(generator: torch.Generator, n: int) -> Problem:
    returns, now = 0.1 * draw(generator, 60, n), torch.full((n,), 1.0 / n, dtype=torch.float64)

    def function(x: Tensor) -> Any:
        return (returns @ x).square().mean() - 0.1 * (returns @ x).mean() + 0.002 * (x - now).abs().sum(), -x, x.sum() - 1

    def program(cp: Any, x: Any) -> tuple[Any, list[Any]]:
        mean = cp.sum(returns.numpy() @ x) / 60
        risk = cp.sum_squares(returns.numpy() @ x) / 60
        return risk - 0.1 * mean + 0.002 * cp.norm1(x - now.numpy()), [x >= 0, cp.sum(x) == 1]

    return function, now.clone(), Convex(program)


@problem(12)
def median_of_points(generator: torch.Generator, n: int) -> Problem:
    points = draw(generator, 5 * n, n)

    def function(x: Tensor) -> Any:
        return (points - x).abs().sum() / (5 * n) + 0.1 * x @ x

    return (
        function,
        draw(generator, n),
        Convex(lambda cp, x: (sum(cp.norm1(point - x) for point in points.numpy()) / (5 * n) + 0.1 * cp.sum_squares(x), [])),
    )


@problem(40, 100)
def group_lasso(generator: torch.Generator, n: int) -> Problem:
    a, _ = regression(generator, 2 * n, n)
    truth = draw(generator, n // 4, 4) * (torch.rand(n // 4, 1, generator=generator) < 0.3)
    b = a @ truth.reshape(-1) + 0.1 * draw(generator, 2 * n)

    def function(x: Tensor) -> Any:
        return 0.5 * (a @ x - b).square().sum() + 0.5 * n * torch.linalg.vector_norm(x.reshape(-1, 4), dim=1).sum()

    def program(cp: Any, x: Any) -> tuple[Any, list[Any]]:
        groups = cp.sum(cp.norm2(cp.reshape(x, (n // 4, 4), order="C"), axis=1))
        return 0.5 * cp.sum_squares(a.numpy() @ x - b.numpy()) + 0.5 * n * groups, []

    return function, draw(generator, n), Convex(program)


@problem((8, 8), (12, 12))
def isotropic_total_variation(generator: torch.Generator, height: int, width: int) -> Problem:
    picture = torch.zeros(height, width, dtype=torch.float64)
    picture[2:-2, 2:-2] = 1.0
    picture = picture + 0.2 * draw(generator, height, width)

    def function(x: Tensor) -> Tensor:
        down, right = functional.pad(x.diff(dim=0), (0, 0, 0, 1)), functional.pad(x.diff(dim=1), (0, 1))
        slopes = torch.linalg.vector_norm(torch.stack([down, right]), dim=0)
        return 0.5 * (x - picture).square().sum() + 0.2 * slopes.sum()

    def program(cp: Any, x: Any) -> tuple[Any, list[Any]]:
        return 0.5 * cp.sum_squares(x - picture.numpy()) + 0.2 * _isotropic(cp, x, height, width), []

    return function, draw(generator, height, width), Convex(program)


def _isotropic(cp: Any, x: Any, height: int, width: int) -> Any:
    """The sum over all pixels of the lengths of the differences to the next ones, below and to the right."""
    total = 0.0
    for i in range(height):
        for j in range(width):
            steps = [x[k, m] - x[i, j] for k, m in ((i + 1, j), (i, j + 1)) if k < height and m < width]
            total += cp.norm2(cp.hstack(steps)) if steps else 0.0
    return total


@problem(20, 50, 100)
def bounded_sum(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 2 * n, n)
    level = 0.3 * float(torch.linalg.lstsq(a, b).solution.abs().sum())

    def function(x: Tensor) -> Any:
        return 0.5 * (a @ x - b).square().sum(), x.abs().sum() - level, None

    return (
        function,
        0.1 * draw(generator, n),
        Convex(lambda cp, x: (0.5 * cp.sum_squares(a.numpy() @ x - b.numpy()), [cp.norm1(x) <= level])),
    )


@problem(60)
def bounded_variation(generator: torch.Generator, n: int) -> Problem:
    signal = (draw(generator, n) * (torch.rand(n, generator=generator) < 0.1)).cumsum(0) + 0.2 * draw(generator, n)

    def function(x: Tensor) -> Any:
        return (x - signal).square().sum(), x.diff().abs().sum() - 3.0, None

    return (
        function,
        torch.zeros(n, dtype=torch.float64),
        Convex(lambda cp, x: (cp.sum_squares(x - signal.numpy()), [cp.norm1(cp.diff(x)) <= 3.0])),
    )


@problem(20)
def denoising_pursuit(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 3 * n, n, outliers=0.1)
    level = 1.3 * float((a @ torch.linalg.lstsq(a, b).solution - b).abs().sum())

    def function(x: Tensor) -> Any:
        return x.abs().sum(), torch.nn.functional.l1_loss(a @ x, b, reduction="sum") - level, None

    return (
        function,
        draw(generator, n),
        Convex(lambda cp, x: (cp.norm1(x), [cp.norm1(a.numpy() @ x - b.numpy()) <= level])),
    )


@problem(20)
def nearest_point_under_a_maximum(generator: torch.Generator, n: int) -> Problem:
    roots, slopes, target = draw(generator, 10, n, n) / n**0.5, draw(generator, 10, n), 3 * draw(generator, n)

    def function(x: Tensor) -> Any:
        return (x - target).square().sum(), (0.5 * (roots @ x).square().sum(1) + slopes @ x).amax() - 1.0, None

    def program(cp: Any, x: Any) -> tuple[Any, list[Any]]:
        parts = [0.5 * cp.sum_squares(root @ x) + slope @ x for root, slope in zip(roots.numpy(), slopes.numpy(), strict=True)]
        return cp.sum_squares(x - target.numpy()), [part <= 1.0 for part in parts]

    return function, torch.zeros(n, dtype=torch.float64), Convex(program)


@problem((10, 20), (20, 40))
def nearest_point_below_a_network(generator: torch.Generator, n: int, hidden: int) -> Problem:
    first, shifts, last = draw(generator, hidden, n), draw(generator, hidden), draw(generator, hidden)
    target = 2 * draw(generator, n)

    def function(x: Tensor) -> Any:
        return (x - target).square().sum(), last @ torch.relu(first @ x + shifts) + 0.25 * hidden, None

    return function, 0.1 * draw(generator, n)


@problem((8, 16), (12, 24))
def nearest_point_below_a_deep_network(generator: torch.Generator, n: int, hidden: int) -> Problem:
    first, second = draw(generator, hidden, n), draw(generator, hidden, hidden) / hidden**0.5
    shifts, last = draw(generator, 2, hidden), draw(generator, hidden)
    target = 2 * draw(generator, n)

    def function(x: Tensor) -> Any:
        inner = torch.relu(second @ torch.relu(first @ x + shifts[0]) + shifts[1])
        return (x - target).square().sum(), last @ inner + 0.25 * hidden, None

    return function, 0.1 * draw(generator, n)
