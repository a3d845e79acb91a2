"""Many inequalities: time per iteration with m = 10 to 1000 half-spaces and n = 50.

The problem is MC of the published set, ‖x − a‖₁ + ½‖x‖² within m random half-spaces: convex, with a known optimum, and
strictly feasible at 0. `minimize` runs with the options PyGRANSO was measured with (opt_tol 1e-6, 200 iterations, 60 s).
PyGRANSO's times are those of another day; with --pygranso-python it is measured too, in turns, which takes minutes.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

from rendering.solver_speed import constraint_records, constraint_table

from solver_timing.processes import WorkerError, measure

COUNTS = (10, 100, 500, 1000)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="processes for each number of inequalities (3)")
    parser.add_argument("--only", default=",".join(map(str, COUNTS)), metavar="NUMBERS", help="numbers of inequalities")
    parser.add_argument("--qp-solver", default="auto", help="option qp_solver of minimize (auto)")


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one run."""
    from nonsmooth import minimize
    from problems.published import many_constraints
    from solver_timing import solving

    function, start, options = solving.minimize_arguments(solving.small())
    minimize(function, start, **options)
    problem = many_constraints(request["constraints"])
    function, start, options = solving.minimize_arguments(problem)
    began = perf_counter()
    result = minimize(function, start, **options, qp_solver=request["qp_solver"])
    seconds = perf_counter() - began
    return {
        "seconds": seconds,
        "iterations": result.iterations,
        "milliseconds_per_iteration": 1e3 * seconds / max(1, result.iterations),
        "status": result.status.name,
        "success": result.success,
        "feasible": result.point.feasible,
        "violation": result.violation,
        "gap": None if problem.optimum is None else result.f - problem.optimum,
        "counts": {kind: getattr(result.costs, kind) for kind in ("values", "gradients", "jacobians")},
        "programs": {"solved": result.programs.solved, "failed": result.programs.failed},
        "time": dict(result.time),
    }


def solve_by_peer(request: dict[str, Any]) -> dict[str, Any]:
    """The same by PyGRANSO, in its environment."""
    from problems.published import many_constraints
    from solver_timing import solving

    solving.by_peer(solving.small())
    problem = many_constraints(request["constraints"])
    run = solving.by_peer(problem)
    return {
        **{key: run[key] for key in ("seconds", "iterations", "status", "violation")},
        "milliseconds_per_iteration": 1e3 * run["seconds"] / max(1, run["iterations"]),
        "gap": None if problem.optimum is None else run["f"] - problem.optimum,
    }


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    numbers = [int(text) for text in options.only.split(",") if text]
    runs_by_count: dict[int, dict[str, list[dict[str, Any]]]] = {count: {"ours": [], "peer": []} for count in numbers}
    for _ in range(options.rounds):
        for count in numbers:
            request = {"constraints": count, "qp_solver": options.qp_solver}
            try:
                if options.pygranso_python:
                    runs_by_count[count]["peer"].append(
                        measure("constraints.solve_by_peer", request, python=options.pygranso_python)
                    )
                runs_by_count[count]["ours"].append(measure("constraints.solve", request))
            except WorkerError as error:
                print(f"{count} inequalities: {error}", file=sys.stderr)
                continue
            last = runs_by_count[count]["ours"][-1]
            print(f"{count} inequalities: {last['milliseconds_per_iteration']:.3g} ms", file=sys.stderr, flush=True)
    measured = {str(count): runs for count, runs in runs_by_count.items()}
    return measured, constraint_table(constraint_records(measured))
