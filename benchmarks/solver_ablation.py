"""What each mechanism of the solver is worth: all of them but one, on the same problems.

    python benchmarks/solver_ablation.py --part published --part random --seeds 20..24
    python benchmarks/solver_ablation.py --mechanisms "valley following,null steps"
    python benchmarks/solver_ablation.py --thresholds
    python benchmarks/solver_ablation.py --page

--thresholds measures every threshold at half and at twice its value instead (whole numbers at the nearest other ones). --page
writes both tables into docs/explanation/solver-mechanisms.md from what is stored.

A mechanism is off in a process of its own (see ablation/mechanisms.py). Problems are the published ones of tests/problems and
random ones of tests/problems/random_problems.py, in natural units and rescaled. Evaluations are compared over the runs that
were solved with and without the mechanism: the geometric mean of without ÷ with, and its 95 % bootstrap interval. Results
are kept in data/solver_ablation.json after each mechanism, and what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "tests"))

import solver_random  # noqa: E402
from ablation.mechanisms import MECHANISMS, change_threshold  # noqa: E402
from ablation.page import compare, write_page  # noqa: E402
from solver_random import CLOSE, FEASIBLE, numbers  # noqa: E402

from problems.random_problems import FAMILIES  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "solver_ablation.json"
MOST_EVALUATIONS = 10_000
LONG = ("oet5", "nesterov_chebyshev_rosenbrock")
"""Published problems that take many thousand evaluations, of which a few more or less say nothing."""


def prepare(mechanism: str) -> None:
    """Switch a mechanism off, or change a threshold, in this process, which computes on one thread."""
    solver_random.use(str(ROOT / "src"))
    if "=" in mechanism:
        name, _, value = mechanism.partition("=")
        change_threshold(name, float(value))()
        return
    chosen = MECHANISMS[mechanism]
    chosen.switch_off()
    if chosen.options:
        import nonsmooth

        minimize = nonsmooth.minimize
        nonsmooth.minimize = lambda *args, **kwargs: minimize(*args, **{**kwargs, **chosen.options})


def published(name: str) -> dict[str, Any]:
    """Solve a published problem from its own start."""
    import torch

    import nonsmooth
    from problems import ALL

    torch.set_num_threads(1)
    case = ALL[name]
    result = nonsmooth.minimize(
        case.function, case.initial(), compile="never", max_evaluations=MOST_EVALUATIONS, max_seconds=60
    )
    gap = (result.f - case.optimum) / (1.0 + abs(case.optimum))
    solved = gap <= CLOSE and case.violation(torch.as_tensor(result.x)) <= FEASIBLE
    proven = result.status.name == "STATIONARY"
    return {
        "key": ["published", name], "solved": bool(solved), "proven": proven, "false": False,
        "evaluations": result.evaluations, "seconds": result.time.total,
    }  # fmt: skip


def random(family: str, size: int, seed: int, decades: float) -> dict[str, Any]:
    """Solve a random problem."""
    run = asdict(solver_random.solve(family, size, seed, decades, 30.0))
    return {"key": ["random", family, size, seed, decades]} | {
        name: run[name] for name in ("solved", "proven", "false", "evaluations", "seconds")
    }


def measure(mechanism: str, tasks: Sequence[Sequence[Any]], jobs: int) -> list[dict[str, Any]]:
    """Solve all problems without a mechanism."""
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare, initargs=(mechanism,)) as pool:
        parts = {"published": published, "random": random}
        return [future.result() for future in [pool.submit(parts[task[0]], *task[1:]) for task in tasks]]


def other_values() -> list[str]:
    """Every threshold at half and at twice its value."""
    sys.path.insert(0, str(ROOT / "src"))
    from nonsmooth.thresholds import meanings

    found = []
    for name, (value, _, _) in meanings().items():
        half, twice = (value // 2, value * 2) if isinstance(value, int) else (value / 2, value * 2)
        found += [f"{name}={half}", f"{name}={twice}"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS), help="names, with commas between them")
    parser.add_argument("--part", action="append", choices=["published", "random"], help="which problems (both)")
    parser.add_argument("--seeds", type=numbers, default=numbers("20..24"), help="of the random problems (20..24)")
    parser.add_argument("--sizes", type=numbers, default=[5, 10], help="numbers of variables (5,10)")
    parser.add_argument("--decades", type=numbers, default=[0, 3], help="rescaled by up to 10 to the ± these (0,3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each core)")
    parser.add_argument("--output", type=Path, default=DATA, metavar="FILE", help=f"where results are kept ({DATA.name})")
    parser.add_argument("--thresholds", action="store_true", help="measure thresholds instead of mechanisms")
    parser.add_argument("--page", action="store_true", help="write the tables of the stored results into the documentation")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output.exists() else {}
    tasks: list[Sequence[Any]] = []
    if "published" in (options.part or ["published"]):
        from problems import ALL

        tasks += [("published", name) for name, case in ALL.items() if case.optimum is not None and name not in LONG]
    if "random" in (options.part or ["random"]):
        tasks += [("random", *task) for task in product(FAMILIES, options.sizes, options.seeds, options.decades)]
    names = ["none", *other_values()] if options.thresholds else options.mechanisms.split(",")
    for name in [] if options.page else names:
        have = {tuple(run["key"]) for run in results.get(name, [])}
        missing = [task for task in tasks if tuple(task) not in have]
        results[name] = results.get(name, []) + (measure(name, missing, options.jobs) if missing else [])
        options.output.write_text(json.dumps(results) + "\n")
        print(" | ".join(str(part) for part in compare(results["none"], results[name])), name, flush=True)
    if options.page:
        write_page(results)


if __name__ == "__main__":
    main()
