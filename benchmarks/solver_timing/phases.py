"""Where the time goes: each phase of a run as a share of it, beside what is known of PyGRANSO.

The phases are those of `Result.time`. Of PyGRANSO only the run time ÷ (evaluations × one forward and one
backward pass per output) is known, from another day, so that its run has two parts: evaluations and everything else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from rendering.solver_growth import PEER_PHASES, draw_phases, phase_records, phase_table

from solver_timing.processes import WorkerError, measure

NAMES = tuple(PEER_PHASES)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=1, help="processes for each problem (1)")
    parser.add_argument("--only", default=",".join(NAMES), metavar="PROBLEMS", help="names, with commas between them")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the shares (.svg or .png; needs matplotlib)")


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one run."""
    from nonsmooth import minimize
    from problems import PUBLISHED
    from solver_timing import solving

    function, start, options = solving.minimize_arguments(solving.small())
    minimize(function, start, **options)
    function, start, options = solving.minimize_arguments(PUBLISHED[request["problem"]]())
    began = perf_counter()
    result = minimize(function, start, **options)
    return {"seconds": perf_counter() - began, "time": dict(result.time), "status": result.status.name}


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    names = [name for name in options.only.split(",") if name]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            try:
                rounds[name].append(measure("phases.solve", {"problem": name}))
            except WorkerError as error:
                print(f"{name}: {error}", file=sys.stderr)
    records = phase_records(rounds)
    if options.plot:
        try:
            draw_phases(records, options.plot)
        except ImportError:
            print("the picture is not drawn: pip install matplotlib", file=sys.stderr)
    return rounds, phase_table(records)
