"""Random nonsmooth problems with a known local minimum, by families.

Each is built around its solution: slopes are chosen so that multipliers exist there, and curvature so that it is a minimum.
All are drawn in natural units, lengths and slopes about 1; `rescaled` states the same problem in others.

    problem = draw("max of quadratics", size=10, seed=3)
    problem.function(problem.start)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

Values = tuple[Tensor, Tensor | None, Tensor | None]
Function = Callable[[Tensor], Values]


@dataclass(frozen=True)
class RandomProblem:
    """A problem with its start and a point that is a local minimum, the global one where `convex`."""

    family: str
    seed: int
    function: Function
    start: Tensor
    solution: Tensor
    convex: bool
    units: Tensor | None = None
    """What x is to be multiplied by for natural units; None where it is in them."""
    natural: Function | None = None
    """The function in natural units; None where `function` is."""

    @property
    def optimum(self) -> float:
        """The objective at the solution, in natural units."""
        return float(self.in_natural_units(self.solution)[0])

    def in_natural_units(self, x: Tensor) -> Values:
        """The functions at x as they were before they were rescaled."""
        return (self.natural or self.function)(self.to_natural_units(x))

    def to_natural_units(self, x: Tensor) -> Tensor:
        """x as it was before it was rescaled."""
        return x if self.units is None else self.units * x

    def rescaled(self, decades: float) -> RandomProblem:
        """The same with variables, objective and constraints multiplied by random factors of up to 10 to the ±decades."""
        generator = _generator(self.seed + 1_000_003)

        def factors(count: int) -> Tensor:
            return 10.0 ** (decades * (2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1))

        units, weight = factors(len(self.start)), factors(1)[0]
        _, inequalities, equalities = self.function(self.start)
        sides = [None if part is None else factors(len(part)) for part in (inequalities, equalities)]

        def function(x: Tensor) -> Values:
            f, ci, ce = self.function(units * x)
            return weight * f, None if ci is None else sides[0] * ci, None if ce is None else sides[1] * ce

        return replace(
            self,
            function=function,
            start=self.start / units,
            solution=self.solution / units,
            units=units,
            natural=self.function,
        )


def draw(family: str, *, size: int, seed: int) -> RandomProblem:
    """A problem of a family, always the same for the same size and seed."""
    return FAMILIES[family](size, _generator(1_000 * seed + size), seed)


def _generator(seed: int) -> Generator:
    return Generator().manual_seed(seed)


def _normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _uniform(generator: Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    return low + (high - low) * torch.rand(*shape, generator=generator, dtype=torch.float64)


def _slopes(generator: Generator, count: int, size: int) -> Tensor:
    return _normal(generator, count, size) / size**0.5


def _curvatures(generator: Generator, count: int, size: int) -> Tensor:
    """Positive semidefinite matrices of norm about 1 and half rank, as factors: H = F Fᵀ."""
    return _normal(generator, count, size, max(1, size // 2)) / size**0.5


def _placed(family: str, generator: Generator, seed: int, size: int, around: Function, *, convex: bool) -> RandomProblem:
    """A problem in x of one in the distance from its solution, started at some distance from it."""
    solution, away = _normal(generator, size), _normal(generator, size)
    start = solution + _uniform(generator, 1, low=0.5, high=4.0) * away / away.norm() * size**0.25
    return RandomProblem(family, seed, lambda x: around(x - solution), start, solution, convex)


def _max_of_quadratics(size: int, generator: Generator, seed: int) -> RandomProblem:
    pieces = int(torch.randint(2, max(3, min(size, 12)) + 1, (1,), generator=generator))
    slopes, factors = _slopes(generator, pieces, size), _curvatures(generator, pieces, size)
    weights = torch.softmax(_normal(generator, pieces), 0)
    slopes = slopes - weights @ slopes  # so that the weighted sum is 0
    lower = _uniform(generator, 3, high=2.0)  # pieces that are not active
    others = _slopes(generator, 3, size)

    def around(d: Tensor) -> Values:
        active = slopes @ d + 0.5 * (factors.mT @ d).square().sum(-1)
        return torch.cat([active, others @ d - lower - 0.1]).max() + 0.05 * d.square().sum(), None, None

    return _placed("max of quadratics", generator, seed, size, around, convex=True)


def _max_of_smooth(size: int, generator: Generator, seed: int) -> RandomProblem:
    pieces = int(torch.randint(2, max(3, min(size, 8)) + 1, (1,), generator=generator))
    slopes, waves = _slopes(generator, pieces, size), _slopes(generator, pieces, size)
    waves = waves / waves.norm(dim=1, keepdim=True)  # so that they bend less than the quadratic
    weights = torch.softmax(_normal(generator, pieces), 0)
    slopes = slopes - weights @ slopes

    def around(d: Tensor) -> Values:
        smooth = torch.cos(3.0 * waves @ d) - 1.0 + torch.log1p((slopes @ d).square())
        return (slopes @ d + 0.1 * smooth + 0.5 * d.square().sum()).max(), None, None

    return _placed("max of smooth functions", generator, seed, size, around, convex=False)


def _sum_of_absolutes(size: int, generator: Generator, seed: int) -> RandomProblem:
    rows = _slopes(generator, 2 * size, size)
    zero = torch.arange(2 * size) < max(1, size // 2)
    offsets = torch.where(zero, 0.0, _normal(generator, 2 * size))
    signs = torch.where(zero, _uniform(generator, 2 * size, low=-0.9, high=0.9), torch.sign(-offsets))
    factor = _curvatures(generator, 1, size)[0]
    slope = -signs @ rows

    def around(d: Tensor) -> Values:
        smooth = slope @ d + 0.5 * (factor.mT @ d).square().sum() + 0.05 * d.square().sum()
        return (rows @ d - offsets).abs().sum() + smooth, None, None

    return _placed("sum of absolute values", generator, seed, size, around, convex=True)


def _sum_of_norms(size: int, generator: Generator, seed: int) -> RandomProblem:
    groups, width = max(2, size // 3), 3
    maps = _normal(generator, groups, width, size) / size**0.5
    zero = (torch.arange(groups) < max(1, groups // 2))[:, None]
    offsets = torch.where(zero, 0.0, _normal(generator, groups, width))
    inside = _normal(generator, groups, width)
    inside = inside / inside.norm(dim=1, keepdim=True) * _uniform(generator, groups, 1, high=0.9)
    outside = -offsets / offsets.norm(dim=1, keepdim=True).clamp(min=1e-300)
    slope = -(torch.where(zero, inside, outside)[:, None, :] @ maps).sum(0)[0]

    def around(d: Tensor) -> Values:
        return (maps @ d - offsets).norm(dim=1).sum() + slope @ d + 0.1 * d.square().sum(), None, None

    return _placed("sum of norms", generator, seed, size, around, convex=True)


def _largest_eigenvalue(size: int, generator: Generator, seed: int) -> RandomProblem:
    order = max(3, min(size, 20))
    several = max(1, order // 3)
    spectrum = torch.cat([torch.zeros(several, dtype=torch.float64), -0.2 - _uniform(generator, order - several)])
    basis = torch.linalg.qr(_normal(generator, order, order))[0]
    base = basis * spectrum @ basis.mT
    maps = _normal(generator, size, order, order) / (order * size) ** 0.5
    maps = maps + maps.mT
    root = _normal(generator, several, several)
    dual = root @ root.mT + 0.1 * torch.eye(several, dtype=torch.float64)
    dual = basis[:, :several] @ (dual / dual.trace()) @ basis[:, :several].mT
    slope = -(maps * dual).sum((1, 2))

    def around(d: Tensor) -> Values:
        matrix = base + (d[:, None, None] * maps).sum(0)
        return torch.linalg.eigvalsh(matrix)[-1] + slope @ d + 0.1 * d.square().sum(), None, None

    return _placed("largest eigenvalue", generator, seed, size, around, convex=True)


def _nuclear_norm(size: int, generator: Generator, seed: int) -> RandomProblem:
    rows = max(2, round(size**0.5))
    columns = max(2, size // rows)
    left, spectrum, right = torch.linalg.svd(_normal(generator, rows, columns), full_matrices=False)
    weight = float(spectrum.mean())
    target = (left * spectrum) @ right
    solution = ((left * (spectrum - weight).clamp(min=0.0)) @ right).reshape(-1)

    def function(x: Tensor) -> Values:
        matrix = x.reshape(rows, columns)
        return 0.5 * (matrix - target).square().sum() + weight * torch.linalg.svdvals(matrix).sum(), None, None

    start = solution + _normal(generator, rows * columns)
    return RandomProblem("nuclear norm", seed, function, start, solution, convex=True)


def _bent(size: int, generator: Generator, count: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Curved functions that vanish at 0, and an objective of which 0 is a minimum among the points where they vanish."""
    slopes, bends = _slopes(generator, count, size), _normal(generator, count, size, size) / size
    bends = 0.5 * (bends + bends.mT)
    multipliers = _normal(generator, count)
    curvature = 0.5 + torch.linalg.matrix_norm((multipliers[:, None, None] * bends).sum(0), 2)
    slope = -multipliers @ slopes
    return lambda d: slopes @ d + 0.5 * (bends @ d) @ d, lambda d: slope @ d + 0.5 * curvature * d.square().sum()


def _curved_equalities(size: int, generator: Generator, seed: int) -> RandomProblem:
    bent, objective = _bent(size, generator, max(1, size // 4))

    def around(d: Tensor) -> Values:
        return objective(d) + 0.1 * d.abs().sum(), None, bent(d)

    return _placed("curved equalities", generator, seed, size, around, convex=False)


def _folded_equalities(size: int, generator: Generator, seed: int) -> RandomProblem:
    """Curved equalities folded into one, their norm, which vanishes at the solution."""
    bent, objective = _bent(size, generator, max(2, size // 4))

    def around(d: Tensor) -> Values:
        return objective(d), None, bent(d).norm().reshape(1)

    return _placed("folded equalities", generator, seed, size, around, convex=False)


def _kinked_equalities(size: int, generator: Generator, seed: int) -> RandomProblem:
    count = max(1, size // 6)
    slopes, edges = _slopes(generator, count, size), _slopes(generator, count, size)
    multipliers = _uniform(generator, count, low=0.2, high=2.0)
    inside = _uniform(generator, count, low=-0.8, high=0.8)
    slope = -multipliers @ (slopes + 0.5 * inside[:, None] * edges)

    def around(d: Tensor) -> Values:
        return slope @ d + 0.5 * d.square().sum(), None, slopes @ d + 0.5 * (edges @ d).abs()

    return _placed("kinked equalities", generator, seed, size, around, convex=False)


def _inequalities(size: int, generator: Generator, seed: int) -> RandomProblem:
    active, slack = max(1, size // 3), max(1, size // 3)
    slopes, factors = _slopes(generator, active + slack, size), _curvatures(generator, active + slack, size)
    levels = torch.cat([torch.zeros(active, dtype=torch.float64), 0.2 + _uniform(generator, slack)])
    multipliers = _uniform(generator, active, low=0.1, high=2.0)
    slope = -multipliers @ slopes[:active]
    kinks = _slopes(generator, size, size)

    def around(d: Tensor) -> Values:
        constraints = slopes @ d + 0.5 * (factors.mT @ d).square().sum(-1) - levels
        return slope @ d + 0.1 * d.square().sum() + 0.1 * (kinks @ d).abs().max(), constraints, None

    return _placed("curved inequalities", generator, seed, size, around, convex=True)


def _degenerate_inequalities(size: int, generator: Generator, seed: int) -> RandomProblem:
    """Active constraints given twice, their sum, and some that are active without a multiplier."""
    active, weak = max(1, size // 4), max(1, size // 4)
    slopes = _slopes(generator, active + weak, size)
    multipliers = _uniform(generator, active, low=0.1, high=2.0)
    slope = -multipliers @ slopes[:active]

    def around(d: Tensor) -> Values:
        own = slopes @ d + 0.1 * d.square().sum()
        constraints = torch.cat([own, own[:active], own[:active].sum().reshape(1)])
        return slope @ d + 0.2 * d.square().sum() + 0.1 * d.abs().sum(), constraints, None

    return _placed("degenerate inequalities", generator, seed, size, around, convex=True)


def _max_constraint(size: int, generator: Generator, seed: int) -> RandomProblem:
    """One inequality that is the maximum of quadratics, several of them active at the solution."""
    pieces = max(2, min(size, 8))
    slopes, factors = _slopes(generator, pieces, size), _curvatures(generator, pieces, size)
    shares = _uniform(generator, pieces, low=0.1, high=1.0)
    slope = -shares @ slopes

    def around(d: Tensor) -> Values:
        largest = (slopes @ d + 0.5 * (factors.mT @ d).square().sum(-1)).max()
        return slope @ d + 0.1 * d.square().sum(), largest.reshape(1), None

    return _placed("max as inequality", generator, seed, size, around, convex=True)


def _spheres(size: int, generator: Generator, seed: int) -> RandomProblem:
    """Groups of variables on unit spheres, under an objective with kinks."""
    groups = max(1, size // 5)
    owners = torch.arange(size) % groups
    solution = _normal(generator, size)

    def lengths(x: Tensor) -> Tensor:
        return torch.zeros(groups, dtype=torch.float64).index_add(0, owners, x.square())

    solution = solution / lengths(solution).sqrt()[owners]
    multipliers = _normal(generator, groups)
    slope = -2.0 * multipliers[owners] * solution
    curvature = 0.5 + 2.0 * multipliers.abs().max()
    rows = _slopes(generator, size, size)

    def function(x: Tensor) -> Values:
        d = x - solution
        return slope @ d + 0.5 * curvature * d.square().sum() + 0.2 * (rows @ d).abs().sum(), None, lengths(x) - 1.0

    start = solution + _normal(generator, size)
    start = start / lengths(start).sqrt()[owners]
    return RandomProblem("spheres", seed, function, start, solution, convex=False)


def _smooth(size: int, generator: Generator, seed: int) -> RandomProblem:
    """A smooth function whose curvature differs by a factor of 1,000 between directions."""
    rows = torch.linalg.qr(_normal(generator, size, size))[0]
    steepness = 10.0 ** torch.linspace(-1.5, 1.5, size, dtype=torch.float64)
    cross = _slopes(generator, size, size)

    def around(d: Tensor) -> Values:
        turned = rows @ d
        flat = torch.log(torch.cosh(turned.clamp(-30, 30))) + 0.05 * turned.square()
        return (steepness * flat).sum() + 0.1 * (cross @ d).pow(4).sum(), None, None

    return _placed("smooth", generator, seed, size, around, convex=True)


def _real_eigenvalues(size: int, generator: Generator, seed: int) -> RandomProblem:
    """Feedback that makes all eigenvalues of a matrix real and negative; they are no Lipschitz functions where two meet.

    The least largest imaginary part is 0, and holds wherever all eigenvalues are real.
    """
    inputs = max(1, round(size**0.5))
    outputs = max(1, size // inputs)
    order = inputs + outputs
    basis = torch.linalg.qr(_normal(generator, order, order))[0] + _normal(generator, order, order) / order**0.5
    spectrum = -0.35 - torch.cumsum(0.05 * _uniform(generator, order), 0)
    closed = torch.linalg.solve(basis, basis * spectrum, left=False)
    control, measurement = _normal(generator, order, inputs) / order**0.5, _normal(generator, outputs, order) / order**0.5
    solution = _normal(generator, inputs * outputs)

    def function(x: Tensor) -> Values:
        feedback = (x - solution).reshape(inputs, outputs)
        eigenvalues = torch.linalg.eigvals(closed + control @ feedback @ measurement)
        return eigenvalues.imag.max(), (eigenvalues.real.max() + 0.3).reshape(1), None

    start = solution + 3.0 * _normal(generator, inputs * outputs)
    return RandomProblem("real eigenvalues", seed, function, start, solution, convex=False)


FAMILIES: dict[str, Callable[[int, Generator, int], Any]] = {
    "max of quadratics": _max_of_quadratics,
    "max of smooth functions": _max_of_smooth,
    "sum of absolute values": _sum_of_absolutes,
    "sum of norms": _sum_of_norms,
    "largest eigenvalue": _largest_eigenvalue,
    "nuclear norm": _nuclear_norm,
    "curved equalities": _curved_equalities,
    "folded equalities": _folded_equalities,
    "kinked equalities": _kinked_equalities,
    "curved inequalities": _inequalities,
    "degenerate inequalities": _degenerate_inequalities,
    "max as inequality": _max_constraint,
    "spheres": _spheres,
    "real eigenvalues": _real_eigenvalues,
    "smooth": _smooth,
}
