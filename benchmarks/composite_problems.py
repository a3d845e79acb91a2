"""Problems whose kinks stand in the program: evaluations with and without looking at them.

    python benchmarks/composite_problems.py
    python benchmarks/composite_problems.py --only "total variation 80,sparse PCA 40x3" --output try.json
    python benchmarks/composite_problems.py --page

Each of 40 problems is solved twice from the same start, with `structure="auto"` and "off", within 20,000 evaluations and two
minutes. Evaluations are values and Jacobians together: a Jacobian that is read from the program counts as well. Results are
kept in data/composite_problems.json; --page writes their table into docs/explanation/what-the-solver-sees.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "src"))

from nonsmooth import minimize  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "composite_problems.json"
PAGE = ROOT / "docs" / "explanation" / "what-the-solver-sees.md"
CLOSE = 1e-4
"""Relative difference of objectives up to which two answers count as the same."""
Function = Callable[[Tensor], Any]
Problem = tuple[Function, Tensor]
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
    return lambda x: 0.5 * (a @ x - b).square().sum() + 0.2 * n * x.abs().sum(), draw(generator, n)


@problem(50)
def elastic_net(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n, n)
    return lambda x: 0.5 * (a @ x - b).square().sum() + 5 * x.abs().sum() + x @ x, draw(generator, n)


@problem(50)
def logistic_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 3 * n, n)
    labels = b.sign()
    return lambda x: functional.softplus(-labels * (a @ x)).sum() + 5 * x.abs().sum(), torch.zeros(n, dtype=torch.float64)


@problem(20, 50)
def robust_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 4 * n, n, outliers=0.1)
    return lambda x: functional.l1_loss(a @ x, b, reduction="sum") + 5 * x.abs().sum(), draw(generator, n)


@problem(60)
def fused_lasso(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n, n)
    return lambda x: 0.5 * (a @ x - b).square().sum() + 2 * x.abs().sum() + 5 * x.diff().abs().sum(), draw(generator, n)


@problem(40, 80, 200)
def total_variation(generator: torch.Generator, n: int) -> Problem:
    signal = (draw(generator, n) * (torch.rand(n, generator=generator) < 0.1)).cumsum(0) + 0.2 * draw(generator, n)
    return lambda x: 0.5 * (x - signal).square().sum() + 0.5 * x.diff().abs().sum(), torch.zeros(n, dtype=torch.float64)


@problem((8, 8), (12, 12))
def total_variation_of_a_picture(generator: torch.Generator, height: int, width: int) -> Problem:
    picture = torch.zeros(height, width, dtype=torch.float64)
    picture[2:-2, 2:-2] = 1.0
    picture = picture + 0.2 * draw(generator, height, width)

    def function(x: Tensor) -> Tensor:
        return 0.5 * (x - picture).square().sum() + 0.2 * (x.diff(dim=0).abs().sum() + x.diff(dim=1).abs().sum())

    return function, torch.zeros(height, width, dtype=torch.float64)


@problem(60)
def trend_filter(generator: torch.Generator, n: int) -> Problem:
    signal = torch.linspace(-1, 1, n, dtype=torch.float64).abs() + 0.1 * draw(generator, n)
    return lambda x: 0.5 * (x - signal).square().sum() + x.diff(n=2).abs().sum(), signal.clone()


@problem(10, 30, 100)
def least_absolute_deviations(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n, outliers=0.2)
    return lambda x: (a @ x - b).abs().mean(), torch.zeros(n, dtype=torch.float64)


@problem(10, 30)
def quantile_regression(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)
    return lambda x: torch.maximum(0.9 * (b - a @ x), -0.1 * (b - a @ x)).mean(), torch.zeros(n, dtype=torch.float64)


@problem(10, 40, 100)
def support_vector_machine(generator: torch.Generator, n: int) -> Problem:
    points, labels = draw(generator, 6 * n, n), draw(generator, 6 * n).sign()
    return lambda x: 0.5 * x @ x + torch.relu(1 - labels * (points @ x)).sum(), torch.zeros(n, dtype=torch.float64)


@problem(10)
def support_vector_regression(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)
    return lambda x: 0.5 * x @ x + ((a @ x - b).abs() - 0.2).clamp(min=0).sum(), torch.zeros(n, dtype=torch.float64)


@problem((20, 1), (40, 1), (40, 3))
def sparse_pca(generator: torch.Generator, n: int, components: int) -> Problem:
    data = draw(generator, 60, n)
    covariance, eye = data.T @ data / 60, torch.eye(components, dtype=torch.float64)

    def function(v: Tensor) -> Any:
        return -(v * (covariance @ v)).sum() + 0.5 * v.abs().sum(), None, v.T @ v - eye

    return function, torch.linalg.qr(draw(generator, n, components))[0]


@problem(10, 20)
def dictionary_learning(generator: torch.Generator, n: int) -> Problem:
    codes = draw(generator, n, 4 * n) * (torch.rand(n, 4 * n, generator=generator) < 0.2)
    start = draw(generator, n)
    return lambda q: ((q @ codes).abs().mean(), None, q @ q - 1), start / start.norm()


@problem(20)
def basis_pursuit(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, n // 2, n)
    return lambda x: (x.abs().sum(), None, a @ x - b), draw(generator, n)


@problem(8, 16)
def minimax_filter(generator: torch.Generator, n: int) -> Problem:
    grid = torch.linspace(0, 1, 8 * n, dtype=torch.float64)
    keep = (grid < 0.4) | (grid > 0.55)
    waves, wanted = torch.cos(math.pi * torch.outer(grid[keep], torch.arange(n))), (grid[keep] < 0.4).double()
    return lambda x: (waves @ x - wanted).abs().max(), torch.zeros(n, dtype=torch.float64)


@problem(10)
def chebyshev_approximation(generator: torch.Generator, n: int) -> Problem:
    a, b = regression(generator, 5 * n, n)
    return lambda x: torch.linalg.vector_norm(a @ x - b, torch.inf), draw(generator, n)


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
        found = torch.relu(inputs @ v["first"]) @ v["second"]
        weights = v["first"].square().sum() + v["second"].square().sum()
        return (found - target).abs().mean() + 1e-3 * weights

    return function, {"first": draw(generator, 2, hidden), "second": draw(generator, hidden)}  # type: ignore[return-value]


@problem(10, 30)
def max_of_quadratics(generator: torch.Generator, n: int) -> Problem:
    roots, slopes = draw(generator, 10, n, n), draw(generator, 10, n)
    matrices = roots @ roots.transpose(1, 2) / n
    return lambda x: (0.5 * torch.einsum("i,kij,j->k", x, matrices, x) + slopes @ x).max(), draw(generator, n)


@problem(10, 20)
def phase_retrieval(generator: torch.Generator, n: int) -> Problem:
    a, truth = draw(generator, 6 * n, n), draw(generator, n)
    return lambda x: ((a @ x).square() - (a @ truth).square()).abs().mean(), truth + 0.3 * draw(generator, n)


@problem(30)
def portfolio_with_costs(generator: torch.Generator, n: int) -> Problem:
    returns, now = 0.1 * draw(generator, 60, n), torch.full((n,), 1.0 / n, dtype=torch.float64)

    def function(x: Tensor) -> Any:
        return (returns @ x).square().mean() - 0.1 * (returns @ x).mean() + 0.002 * (x - now).abs().sum(), -x, x.sum() - 1

    return function, now.clone()


@problem(12)
def median_of_points(generator: torch.Generator, n: int) -> Problem:
    points = draw(generator, 5 * n, n)
    return lambda x: (points - x).abs().sum() / (5 * n) + 0.1 * x @ x, draw(generator, n)


def measure(name: str) -> dict[str, Any]:
    """Solve a problem both ways."""
    found: dict[str, Any] = {"name": name}
    for structure in ("auto", "off"):
        function, start = PROBLEMS[name]()
        began = perf_counter()
        result = minimize(function, start, structure=structure, compile="never", max_evaluations=20_000, max_seconds=120)
        found[structure] = {
            "status": result.status.name, "f": result.f, "values": result.costs.values,
            "jacobians": result.costs.jacobians + result.costs.gradients, "seconds": perf_counter() - began,
            "kinks": result.structure.terms, "active": result.structure.active, "followed": result.structure.followed,
        }  # fmt: skip
    return found


def work(run: dict[str, Any]) -> int:
    return int(run["values"] + run["jacobians"])


def table(results: list[dict[str, Any]]) -> list[str]:
    """A row for each problem, and what they come to."""
    lines = [
        "| problem | kinks | at the answer | seen: evaluations, seconds | not seen: evaluations, seconds | ratio |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    for result in results:
        seen, stepped = result["auto"], result["off"]
        ratio = work(seen) / work(stepped)
        ratios.append(ratio)
        cells = [_cell(run) for run in (seen, stepped)]
        apart = (seen["f"] - stepped["f"]) / (1 + abs(stepped["f"]))
        other = "" if abs(apart) <= CLOSE else ", higher f" if apart > 0 else ", lower f"
        lines.append(
            f"| {result['name']} | {seen['kinks']} | {seen['active']} | {cells[0]} | {cells[1]} | {ratio:.3f}{other} |"
        )
    proven = [sum(result[way]["status"] == "STATIONARY" for result in results) for way in ("auto", "off")]
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    told = f"Proven: {proven[0]} with kinks seen, {proven[1]} without, of {len(results)}. "
    return [f"{told}Geometric mean of the ratios: {mean:.3f}, the largest {max(ratios):.2f}.", "", *lines]


def _cell(run: dict[str, Any]) -> str:
    verdict = "" if run["status"] == "STATIONARY" else f" ({run['status'].lower().replace('_', ' ')})"
    return f"{work(run)}, {run['seconds']:.2f}{verdict}"


def write_page(results: list[dict[str, Any]]) -> None:
    head, _, rest = PAGE.read_text().partition("<!-- composite problems -->\n")
    _, _, tail = rest.partition("<!-- end of composite problems -->")
    lines = "\n".join(["", *table(results), "", ""])
    PAGE.write_text(f"{head}<!-- composite problems -->\n{lines}<!-- end of composite problems -->{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--output", type=Path, default=DATA, metavar="FILE", help=f"where results are kept ({DATA.name})")
    parser.add_argument("--page", action="store_true", help="write the table of the stored results into the documentation")
    options = parser.parse_args()
    if options.page:
        write_page(json.loads(DATA.read_text()))
        return
    torch.set_num_threads(1)
    chosen = options.only.split(",") if options.only else list(PROBLEMS)
    unknown = set(chosen) - set(PROBLEMS)
    if unknown:
        parser.error(f"there is no problem {sorted(unknown)[0]!r}; the problems are {', '.join(PROBLEMS)}")
    results = []
    for name in chosen:
        results.append(measure(name))
        print(table(results[-1:])[-1], flush=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results)[0])


if __name__ == "__main__":
    main()
