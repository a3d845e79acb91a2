"""What each mechanism of the solver is worth: all of them but one, on the same problems.

    python benchmarks/solver_ablation.py --seeds 20..23 --output choosing.json
    python benchmarks/solver_ablation.py --mechanisms "bundle,null steps"
    python benchmarks/solver_ablation.py --thresholds --part published --part random

--thresholds measures every threshold at half and at twice its value instead (whole numbers at the nearest other ones). `make
results` writes both tables into docs/explanation/solver-mechanisms.md.

Kinks are found by stepping over them throughout (`structure="off"`): that is what the mechanisms are for. Each is switched off
in a process of its own (see ablation/mechanisms.py), several of them at a time. Problems are the published ones of
tests/problems and PyGRANSO's examples, each from its own start and from others beside it, those of kinked_constraints.py, and
random ones of
tests/problems/random_problems.py, in natural units and rescaled. Evaluations are compared over the runs that were solved with
and without the mechanism: the geometric mean of without ÷ with, and its 95 % bootstrap interval. Results are stored as they
come, and what the file already has is not measured again: begin with a new file when the solver has changed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "tests"))

import solver_random  # noqa: E402
from ablation.mechanisms import MECHANISMS, change_threshold  # noqa: E402
from rendering.solver_mechanisms import compare  # noqa: E402
from rendering.tables import mean_with_interval  # noqa: E402
from solver_random import MAX_GAP, MAX_VIOLATION, numbers  # noqa: E402
from stored_results import Measurement, load, pack, path_of, unpack  # noqa: E402

from problems.random_problems import FAMILIES  # noqa: E402

MAX_EVALUATIONS, MAX_KINKED_EVALUATIONS = 10_000, 3_000
NOTES = ("Runs that the file already had were not measured again; the commit is that of the last ones.",)
LONG_RUNNING = ("oet5", "nesterov_chebyshev_rosenbrock")
"""Published problems that take many thousand evaluations, of which a few more or less say nothing."""
SLOW_EXAMPLES = ("A2", "D1")
"""Examples of PyGRANSO's that take seconds."""


def prepare(mechanism: str) -> None:
    """Switch a mechanism off, or change a threshold, in this process, which computes on one thread."""
    solver_random.use(str(ROOT / "src"))
    import nonsmooth

    options: dict[str, Any] = {"structure": "off"}  # where kinks are seen in the program, most mechanisms have nothing to do
    if "=" in mechanism:
        name, _, value = mechanism.partition("=")
        change_threshold(name, float(value))()
    else:
        MECHANISMS[mechanism].switch_off()
        options |= MECHANISMS[mechanism].options
    minimize = nonsmooth.minimize
    nonsmooth.minimize = lambda *args, **kwargs: minimize(*args, **{**kwargs, **options})


def published(name: str, start: int) -> dict[str, Any]:
    """Solve a published problem from its own start, or from one beside it."""
    import torch

    import nonsmooth
    from problems import ALL

    torch.set_num_threads(1)
    case = ALL[name]
    x = case.initial()
    result = nonsmooth.minimize(
        case.function, x + perturbation(x, start), compile="never", max_evaluations=MAX_EVALUATIONS, max_seconds=60
    )
    gap = (result.f - case.optimum) / (1.0 + abs(case.optimum))
    solved = gap <= MAX_GAP and case.violation(torch.as_tensor(result.x)) <= MAX_VIOLATION
    proven = result.status.name == "STATIONARY"
    return {
        "key": ["published", name, start], "solved": bool(solved), "proven": proven, "false": False,
        "evaluations": result.evaluations, "seconds": result.time.total,
    }  # fmt: skip


def peer(name: str, start: int) -> dict[str, Any]:
    """Solve an example of PyGRANSO's with its options, within three times its iterations; a proof counts as a solution."""
    import torch
    from solver_timing.solving import minimize_arguments

    import nonsmooth
    from problems import PUBLISHED

    torch.set_num_threads(1)
    problem = PUBLISHED[name]()
    function, at, options = minimize_arguments(problem)
    with torch.no_grad():
        for part in at.values() if isinstance(at, dict) else at.parameters():
            part += perturbation(part, start)
    options["max_iterations"] = 3 * options.get("max_iterations", 1000)
    result = nonsmooth.minimize(function, at, compile="never", **options)
    proven = result.status.name == "STATIONARY"
    return {
        "key": ["peer", name, start], "solved": proven, "proven": proven, "false": False,
        "evaluations": result.evaluations, "seconds": result.time.total,
    }  # fmt: skip


def perturbation(x: Any, start: int) -> Any:
    """What is added to a start for another one, about a hundredth of it; nothing for the first."""
    import torch

    generator = torch.Generator().manual_seed(start)
    return 0.01 * (start > 0) * x.abs().mean() * torch.randn(x.shape, generator=generator, dtype=x.dtype)


def random(family: str, size: int, seed: int, decades: float) -> dict[str, Any]:
    """Solve a random problem."""
    run = asdict(solver_random.solve(family, size, seed, decades, 30.0))
    return {"key": ["random", family, size, seed, decades]} | {
        name: run[name] for name in ("solved", "proven", "false", "evaluations", "seconds")
    }


def kinked(name: str, number: int) -> dict[str, Any]:
    """Solve a problem whose constraints have kinks; there is no other answer to compare with, so a proof is a solution."""
    import torch
    from kinked_constraints import SETS

    import nonsmooth

    torch.set_num_threads(1)
    _, start, function, _ = next(islice(SETS[name](), number, None))
    result = nonsmooth.minimize(function, start, compile="never", max_evaluations=MAX_KINKED_EVALUATIONS, max_seconds=60)
    proven = result.status.name == "STATIONARY"
    return {
        "key": ["kinked", name, number], "solved": proven, "proven": proven, "false": False,
        "evaluations": result.evaluations, "seconds": result.time.total,
    }  # fmt: skip


PARTS = {"published": published, "peer": peer, "kinked": kinked, "random": random}


def measure(mechanism: str, tasks: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Solve problems without a mechanism, in a process that does nothing else."""
    prepare(mechanism)
    return [PARTS[task[0]](*task[1:]) for task in tasks]


def other_values() -> list[str]:
    """Every threshold at half and at twice its value."""
    sys.path.insert(0, str(ROOT / "src"))
    from nonsmooth.thresholds import meanings

    changes = []
    for name, (value, _, _) in meanings().items():
        half, twice = (value // 2, value * 2) if isinstance(value, int) else (value / 2, value * 2)
        changes += [f"{name}={half}", f"{name}={twice}"]
    return changes


def all_tasks(options: argparse.Namespace) -> Iterator[Sequence[Any]]:
    """The problems that were asked for."""
    parts = options.part or PARTS
    if "published" in parts:
        from problems import ALL

        names = [name for name, case in ALL.items() if case.optimum is not None and name not in LONG_RUNNING]
        yield from (("published", *task) for task in product(names, options.starts))
    if "peer" in parts:
        from problems import PUBLISHED

        yield from (
            ("peer", *task) for task in product([name for name in PUBLISHED if name not in SLOW_EXAMPLES], options.starts)
        )
    if "kinked" in parts:
        from kinked_constraints import SETS

        yield from (("kinked", name, number) for name, problems in SETS.items() for number, _ in enumerate(problems()))
    if "random" in parts:
        yield from (("random", *task) for task in product(FAMILIES, options.sizes, options.seeds, options.decades))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS), help="names, with commas between them")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="which problems (all)")
    parser.add_argument("--seeds", type=numbers, default=numbers("20..23"), help="of the random problems (20..23)")
    parser.add_argument("--sizes", type=numbers, default=[5, 20], help="numbers of variables (5,20)")
    parser.add_argument("--decades", type=numbers, default=[0, 3], help="rescaled by up to 10 to the ± these (0,3)")
    parser.add_argument("--starts", type=numbers, default=[0, 1, 2], help="of the published problems; 0 is their own (0,1,2)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one for each core)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to store the results, or to add to them")
    parser.add_argument("--thresholds", action="store_true", help="measure thresholds instead of mechanisms")
    options = parser.parse_args()
    measurement = Measurement("solver_thresholds" if options.thresholds else "solver_ablation")
    output = options.output or path_of("solver_thresholds" if options.thresholds else "solver_ablation")
    stored = load(output)["samples"] if output.exists() else {}
    results = {name: unpack(runs) for name, runs in stored.items()}
    tasks = list(all_tasks(options))
    names = ["none", *other_values()] if options.thresholds else options.mechanisms.split(",")
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        running = {}
        for name in names:
            have = {tuple(run["key"]) for run in results.get(name, [])}
            missing = [task for task in tasks if tuple(task) not in have]
            if missing:
                running[pool.submit(measure, name, missing)] = name
        for future in as_completed(running):
            name = running[future]
            results[name] = results.get(name, []) + future.result()
            measurement.write({name: pack(runs) for name, runs in results.items()}, notes=NOTES, path=output)
            print(f"{name}: {len(results[name])} runs", flush=True)
    for name in names:
        comparison = compare(results["none"], results[name])
        print(f"{name}: {comparison.runs} runs, {comparison.solved:+d} solved, {comparison.proven:+d} proven, "
              f"{comparison.false:+d} false, evaluations × {mean_with_interval(comparison.ratios)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
