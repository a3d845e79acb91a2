"""Constraints with kinks: how many runs end with a proof, and how many evaluations they take.

    python benchmarks/kinked_constraints.py
    python benchmarks/kinked_constraints.py --starts 3 --output other.json

Four sets of problems; all but the last can also be stated without kinks:

- `merged`: problems of the tests with several inequalities, made one by their maximum, beside the problems as they are;
- `pieces`: random objectives under the maximum of convex quadratics, beside the quadratics as separate constraints;
- `several`: two or three such maxima at once;
- `surfaces`: quadratics on the surface of bodies with edges (equalities of norms, of sums of them, of maxima).

Every problem is run from --starts starts that differ in the ninth digit, with default options, at most --evaluations each.
To compare two versions, run the script of this one with the other's `src` as PYTHONPATH.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))
sys.path.insert(1, str(ROOT / "tests"))

import torch  # noqa: E402
from rendering.solver_tables import kinked_table  # noqa: E402
from stored_results import Measurement, add_output_argument  # noqa: E402
from torch import Tensor  # noqa: E402

from nonsmooth import Status, minimize  # noqa: E402
from problems import ALL  # noqa: E402

Function = Callable[[Tensor], Any]
Problem = tuple[str, Tensor, Function, Function | None]
"""Name, start, the problem with kinks, and the same without them where there is such a thing."""

CHAOTIC = ("hs106",)
"""Solved or not by chance, as they are."""


def merged() -> Iterator[Problem]:
    for name, case in ALL.items():
        inequalities = case.function(case.initial())[1]
        if inequalities is None or len(inequalities) < 2 or name in CHAOTIC:
            continue

        def together(x: Tensor, function: Function = case.function) -> Any:
            f, inequality, equality = function(x)
            return f, inequality.max(), equality

        yield name, case.initial(), together, case.function


def quadratics(size: int, count: int, seed: int) -> tuple[Function, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    roots = torch.randn(count, size, size, dtype=torch.float64, generator=generator) / size**0.5
    slopes = torch.randn(count, size, dtype=torch.float64, generator=generator)
    start = 0.1 * torch.randn(size, dtype=torch.float64, generator=generator)
    return lambda x: 0.5 * (roots.mT @ x).square().sum(-1) + slopes @ x - 1.0, start


def objective(kind: str, size: int, seed: int) -> Function:
    generator = torch.Generator().manual_seed(seed)
    target = 3 * torch.randn(size, dtype=torch.float64, generator=generator)
    matrix = torch.randn(size, size, dtype=torch.float64, generator=generator)
    return {
        "linear": lambda x: target @ x,
        "quadratic": lambda x: (matrix @ (x - target)).square().sum() / size,
        "absolute": lambda x: (x - target).abs().sum(),
        "rosenbrock": lambda x: (1 - x).square().sum() + 10 * (x[1:] - x[:-1].square()).square().sum(),
    }[kind]


KINDS = ("linear", "quadratic", "absolute", "rosenbrock")


def pieces() -> Iterator[Problem]:
    for kind in KINDS:
        for size, count in ((3, 2), (5, 4), (10, 3), (10, 8), (20, 5), (30, 20)):
            f, (constraints, start) = objective(kind, size, size + count), quadratics(size, count, size + count)

            def separate(x: Tensor, f: Function = f, constraints: Function = constraints) -> Any:
                return f(x), constraints(x), None

            def together(x: Tensor, f: Function = f, constraints: Function = constraints) -> Any:
                return f(x), constraints(x).max(), None

            yield f"{kind}, n = {size}, {count} pieces", start, together, separate


def several() -> Iterator[Problem]:
    for number, kind in enumerate(KINDS):
        for size, count, groups in ((4, 3, 2), (8, 5, 2), (15, 6, 2), (8, 5, 3), (15, 6, 3)):
            f = objective(kind, size, 100 * number + size)
            parts = [quadratics(size, count, 100 * number + size + 20 * group) for group in range(groups)]

            def separate(x: Tensor, f: Function = f, parts: Any = parts) -> Any:
                return f(x), torch.cat([constraints(x) for constraints, _ in parts]), None

            def together(x: Tensor, f: Function = f, parts: Any = parts) -> Any:
                return f(x), torch.stack([constraints(x).max() for constraints, _ in parts]), None

            yield f"{kind}, n = {size}, {groups} of {count} pieces", parts[0][1], together, separate


def surfaces() -> Iterator[Problem]:
    bodies: dict[str, Function] = {
        "sum of absolute values": lambda x: x.abs().sum() - 1,
        "largest absolute value": lambda x: x.abs().max() - 0.2,
        "two sums": lambda x: x.reshape(-1, 5).abs().sum(1) - 0.7,
        "largest": lambda x: x.max() - 0.1,
        "sum of norms": lambda x: x.reshape(5, 2).norm(dim=1).sum() - 1,
        "norm that vanishes": lambda x: x[:4].norm(),
    }
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        target = torch.randn(10, dtype=torch.float64, generator=generator)
        matrix = torch.randn(10, 10, dtype=torch.float64, generator=generator)
        start = 0.3 * torch.randn(10, dtype=torch.float64, generator=generator)
        for name, body in bodies.items():

            def on(x: Tensor, matrix: Tensor = matrix, target: Tensor = target, body: Function = body) -> Any:
                return (matrix @ x - target).square().sum(), None, body(x)

            yield f"{name}, {seed}", start, on, None


SETS: dict[str, Callable[[], Iterator[Problem]]] = {
    "merged": merged,
    "pieces": pieces,
    "several": several,
    "surfaces": surfaces,
}


def run(problem: Problem, starts: int, evaluations: int) -> dict[str, Any]:
    name, start, function, plain = problem
    record: dict[str, Any] = {
        "problem": name, "evaluations": [], "stationary": 0, "evaluations_without_kinks": [], "better_without_kinks": 0,
    }  # fmt: skip
    for number in range(starts):
        noise = torch.randn(start.shape, dtype=start.dtype, generator=torch.Generator().manual_seed(number))
        begin = start + 1e-9 * noise
        result = minimize(function, begin, compile="never", max_evaluations=evaluations)
        record["evaluations"].append(result.evaluations)
        record["stationary"] += result.status is Status.STATIONARY
        if plain is not None:
            other = minimize(plain, begin, compile="never", max_evaluations=evaluations)
            record["evaluations_without_kinks"].append(other.evaluations)
            record["better_without_kinks"] += other.f < result.f - 1e-5 * max(1.0, abs(other.f))
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=2, help="of each problem (2)")
    parser.add_argument("--evaluations", type=int, default=3000, help="most of one run (3000)")
    parser.add_argument("--only", default=",".join(SETS), metavar="SETS", help="names, with commas between them")
    add_output_argument(parser, "kinked_constraints")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - set(SETS)
    if unknown:
        parser.error(f"there is no set {sorted(unknown)[0]!r}; the sets are {', '.join(SETS)}")
    torch.set_num_threads(1)
    measurement, samples = Measurement("kinked_constraints"), {}
    for name in options.only.split(","):
        samples[name] = []
        for problem in SETS[name]():
            print(f"{name}: {problem[0]}", file=sys.stderr)
            samples[name].append(run(problem, options.starts, options.evaluations))
        print(kinked_table({name: samples[name]}).splitlines()[-1], flush=True)
    print("\n" + kinked_table(samples))
    print(f"stored in {measurement.write(samples, notes=('One thread.',), path=options.output)}")


if __name__ == "__main__":
    main()
