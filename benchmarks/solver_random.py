"""The solver on fresh random problems with known minima: solved, proven, falsely proven, evaluations.

    python benchmarks/solver_random.py --seeds 0..9 --output new.json
    python benchmarks/solver_random.py --seeds 0..9 --decades 6 --output badly_scaled.json
    python benchmarks/solver_random.py --seeds 0..9 --source ../other/src --output old.json
    python benchmarks/solver_random.py --compare old.json new.json

Families are those of tests/problems/random_problems.py. With --decades, variables, objective and constraints are multiplied by
random factors of up to 10 to the ±decades; what is solved is still judged in natural units. Whether a verdict is true is found
out by tests/problems/independent_check.py, which shares no code with the solver. Seeds that were looked at while the solver was
changed say nothing about it any more: choose with some, and look at others once at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import fmean
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "tests"))

from problems.random_problems import FAMILIES, draw  # noqa: E402

CLOSE = 1e-4
"""How far f may lie above the known minimum, relative to 1 + |f|, for a problem to be solved."""
FEASIBLE = 1e-5
STATIONARY, DENIED = 1e-2, 3e-2
"""Residuals of the independent check: one up to the first makes another local minimum an answer; one above the second denies
a verdict."""
MOST_CHECKED = 30
"""Variables up to which the independent check is asked: it solves dense least-squares problems."""


@dataclass(frozen=True)
class Run:
    """One run, judged in natural units."""

    family: str
    size: int
    seed: int
    decades: float
    status: str
    proven: bool
    solved: bool
    false: bool
    gap: float
    violation: float
    residual: float | None
    evaluations: int
    iterations: int
    seconds: float

    @property
    def key(self) -> tuple[str, int, int, float]:
        """What tells problems apart."""
        return self.family, self.size, self.seed, self.decades


def use(source: str) -> None:
    """Import the solver from here, on one thread."""
    sys.path.insert(0, source)
    os.environ["OMP_NUM_THREADS"] = "1"


def solve(family: str, size: int, seed: int, decades: float, seconds: float) -> Run:
    import torch

    from nonsmooth import minimize
    from problems.independent_check import residual, violation

    torch.set_num_threads(1)
    problem = draw(family, size=size, seed=seed)
    if decades:
        problem = problem.rescaled(decades)
    began = perf_counter()
    result = minimize(problem.function, problem.start, compile="never", max_seconds=seconds, max_evaluations=20_000)
    took = perf_counter() - began
    x = problem.to_natural_units(result.x)
    natural = problem.in_natural_units
    gap = (float(natural(result.x)[0]) - problem.optimum) / (1.0 + abs(problem.optimum))
    broken = violation(lambda _: natural(result.x), x)
    close = gap <= CLOSE and broken <= FEASIBLE
    left = None
    if not close and size <= MOST_CHECKED and broken <= FEASIBLE and math.isfinite(gap):
        left = residual(problem.natural or problem.function, x)
    solved = close or (not problem.convex and left is not None and left <= STATIONARY)
    denied = broken > 100 * FEASIBLE or (left > DENIED if left is not None else problem.convex and gap > 10 * CLOSE)
    proven = bool(result.status.name == "STATIONARY")
    return Run(
        family, size, seed, decades, result.status.name, proven, solved, proven and not solved and denied,
        gap, broken, left, result.evaluations, result.iterations, took,
    )  # fmt: skip


def measure(tasks: Sequence[tuple[str, int, int, float]], source: str, jobs: int, seconds: float) -> list[Run]:
    found = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=use, initargs=(source,)) as pool:
        waiting = [pool.submit(solve, *task, seconds) for task in tasks]
        for number, future in enumerate(as_completed(waiting), 1):
            run = future.result()
            found.append(run)
            if run.false:
                print(f"false verdict: {run.key}, residual {run.residual}, gap {run.gap:.1e}", file=sys.stderr)
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return sorted(found, key=lambda run: run.key)


def geometric_mean(numbers: Iterable[float]) -> float:
    return math.exp(fmean(math.log(max(number, 1e-9)) for number in numbers))


def table(runs: Sequence[Run]) -> list[str]:
    lines = [
        "| family | runs | solved | proven | false | evaluations, geometric mean | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for family in [*FAMILIES, None]:
        own = [run for run in runs if family is None or run.family == family]
        if own:
            counts = " | ".join(str(sum(getattr(run, name) for run in own)) for name in ("solved", "proven", "false"))
            took = sum(run.seconds for run in own)
            mean = geometric_mean(run.evaluations for run in own)
            lines.append(f"| {family or 'all'} | {len(own)} | {counts} | {mean:.1f} | {took:.0f} |")
    return lines


def comparison(old: Sequence[Run], new: Sequence[Run]) -> list[str]:
    """Both versions on the problems that both have; the ratio of evaluations over those that both solved, with an interval."""
    before = {run.key: run for run in old}
    pairs = [(before[run.key], run) for run in new if run.key in before]
    lines = ["| family | runs | solved | proven | false | evaluations, new ÷ old |", "|---|---|---|---|---|---|"]
    for family in [*FAMILIES, None]:
        own = [pair for pair in pairs if family is None or pair[0].family == family]
        if own:
            counts = " | ".join(
                f"{sum(getattr(one, name) for one, _ in own)} → {sum(getattr(two, name) for _, two in own)}"
                for name in ("solved", "proven", "false")
            )
            both = [two.evaluations / one.evaluations for one, two in own if one.solved and two.solved]
            lines.append(f"| {family or 'all'} | {len(own)} | {counts} | {_with_interval(both)} |")
    return lines


def _with_interval(ratios: Sequence[float]) -> str:
    """The geometric mean with a 95 % bootstrap interval."""
    if not ratios:
        return "–"
    random = Random(0)
    means = sorted(geometric_mean(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{geometric_mean(ratios):.3f} ({means[50]:.3f}–{means[-51]:.3f})"


def load(path: Path) -> list[Run]:
    return [Run(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))["runs"]]


def numbers(text: str) -> list[int]:
    """`0..9` or `3,5,8`."""
    first, dots, last = text.partition("..")
    return list(range(int(first), int(last) + 1)) if dots else [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=numbers, default=numbers("0..4"), help="such as 0..9 (0..4)")
    parser.add_argument("--sizes", type=numbers, default=[5, 10, 20], help="numbers of variables (5,10,20)")
    parser.add_argument("--families", default=",".join(FAMILIES), help="names, with commas between them")
    parser.add_argument("--decades", type=float, default=0.0, help="rescale by up to 10 to the ± this (0)")
    parser.add_argument("--seconds", type=float, default=30.0, help="most of one run (30)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each core)")
    parser.add_argument("--source", default=str(ROOT / "src"), help="the folder that holds the solver to measure")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what was measured as JSON")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="compare two such files instead")
    options = parser.parse_args()
    if options.compare:
        print("\n".join(comparison(*map(load, options.compare))))
        return
    chosen = options.families.split(",")
    unknown = set(chosen) - set(FAMILIES)
    if unknown:
        parser.error(f"there is no family {sorted(unknown)[0]!r}; the families are {', '.join(FAMILIES)}")
    tasks = [(*task, options.decades) for task in product(chosen, options.sizes, options.seeds)]
    runs = measure(tasks, str(Path(options.source).resolve()), options.jobs, options.seconds)
    print("\n".join(table(runs)))
    if options.output:
        text = json.dumps({"source": Path(options.source).name, "runs": [asdict(run) for run in runs]}, indent=1)
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
