"""The solver on fresh random problems with known minima: solved, proven, falsely proven, evaluations.

    python benchmarks/solver_random.py --seeds 0..9 --output new.json
    python benchmarks/solver_random.py --seeds 0..9 --decades 6 --output badly_scaled.json
    python benchmarks/solver_random.py --seeds 0..9 --source ../other/src --output old.json
    python benchmarks/solver_random.py --compare old.json new.json

Families are those of tests/problems/random_problems.py. With --decades, variables, objective and constraints are multiplied by
random factors of up to 10 to the ±decades; whether a problem is solved is still judged in natural units. Whether a proof is
true is decided by tests/problems/independent_check.py, which shares no code with the solver. Seeds that were used while the
solver was changed are no evidence any more: choose with some, and measure others once at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "tests"))

from rendering.solver_tables import random_comparison, random_table  # noqa: E402
from stored_results import Measurement, add_output_argument, load, pack, unpack  # noqa: E402

from problems.random_problems import FAMILIES, draw  # noqa: E402

MAX_GAP = 1e-4
"""How far f may lie above the known minimum, relative to 1 + |f|, for a problem to be solved."""
MAX_VIOLATION = 1e-5
STATIONARY_RESIDUAL, REFUTING_RESIDUAL = 1e-2, 3e-2
"""Residuals of the independent check: one up to the first makes another local minimum a solution; one above the second refutes
a proof."""
MAX_CHECKED_VARIABLES = 30
"""Variables up to which the independent check runs: it solves dense least-squares problems."""


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
    close = gap <= MAX_GAP and broken <= MAX_VIOLATION
    left = None
    if not close and size <= MAX_CHECKED_VARIABLES and broken <= MAX_VIOLATION and math.isfinite(gap):
        left = residual(problem.natural or problem.function, x)
    solved = close or (not problem.convex and left is not None and left <= STATIONARY_RESIDUAL)
    denied = broken > 100 * MAX_VIOLATION or (
        left > REFUTING_RESIDUAL if left is not None else problem.convex and gap > 10 * MAX_GAP
    )
    proven = bool(result.status.name == "STATIONARY")
    return Run(
        family, size, seed, decades, result.status.name, proven, solved, proven and not solved and denied,
        gap, broken, left, result.evaluations, result.iterations, took,
    )  # fmt: skip


def measure(tasks: Sequence[tuple[str, int, int, float]], source: str, jobs: int, seconds: float) -> list[Run]:
    runs = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=use, initargs=(source,)) as pool:
        waiting = [pool.submit(solve, *task, seconds) for task in tasks]
        for number, future in enumerate(as_completed(waiting), 1):
            run = future.result()
            runs.append(run)
            if run.false:
                print(f"false verdict: {run.key}, residual {run.residual}, gap {run.gap:.1e}", file=sys.stderr)
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return sorted(runs, key=lambda run: run.key)


def stored_runs(path: Path) -> list[dict[str, Any]]:
    """The runs of a file of results."""
    return unpack(load(path)["samples"])


def numbers(text: str) -> list[int]:
    """`0..9` or `3,5,8`."""
    first, dots, last = text.partition("..")
    return list(range(int(first), int(last) + 1)) if dots else [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=numbers, default=numbers("0..4"), help="such as 0..9 (0..4)")
    parser.add_argument("--sizes", type=numbers, default=[5, 10, 20], help="numbers of variables (5,10,20)")
    parser.add_argument("--families", default=",".join(FAMILIES), help="names, with commas between them")
    parser.add_argument("--decades", type=numbers, default=[0], help="rescale by up to 10 to the ± each of these (0)")
    parser.add_argument("--seconds", type=float, default=30.0, help="most of one run (30)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each core)")
    parser.add_argument("--source", default=str(ROOT / "src"), help="the folder that holds the solver to measure")
    add_output_argument(parser, "solver_random")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="compare two such files instead")
    options = parser.parse_args()
    if options.compare:
        print(random_comparison(*map(stored_runs, options.compare)))
        return
    chosen = options.families.split(",")
    unknown = set(chosen) - set(FAMILIES)
    if unknown:
        parser.error(f"there is no family {sorted(unknown)[0]!r}; the families are {', '.join(FAMILIES)}")
    measurement = Measurement("solver_random")
    tasks = list(product(chosen, options.sizes, options.seeds, map(float, options.decades)))
    runs = measure(tasks, str(Path(options.source).resolve()), options.jobs, options.seconds)
    records = [asdict(run) for run in runs]
    print(random_table(records))
    print(f"stored in {measurement.write(pack(records), path=options.output)}")


if __name__ == "__main__":
    main()
