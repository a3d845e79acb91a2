"""The published problems: time to PyGRANSO's own final quality, PyGRANSO beside `nonsmooth.pygranso`.

Both get the same function, start and options in the same form. The point PyGRANSO ends at, evaluated again, sets the
target of that round:

- its violation, or the tolerance of the problem's options (1e-6 where they say nothing), whichever is larger, and
- its objective + 1e-6·(1 + |objective|).

Where PyGRANSO ends at a point that is not feasible to that tolerance (A2, D3), the violation comes first, as no feasible
point compares with it: the target is its violation alone. A stricter target adds its value of f + violation/μ with the μ it
ended with, its own measure of how good a point is. These rows are marked, and both targets are reported.

Headline: PyGRANSO's whole solve time ÷ our time from the call to the first iterate as good as the target. Second, kinder
to PyGRANSO, which may have had that quality before it stopped: both until the first point **evaluated** that is as good,
by the stricter target.
Start of the process, imports and a solve of a problem with four variables come before the clock, in both.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

from rendering.solver_speed import published_table
from rendering.tables import duration, number

from solver_timing.processes import WorkerError, measure

NAMES = ("A1", "A1r", "A2", "A3", "B1", "B2", "B3", "B3big", "C1", "C1big", "C2", "C3", "D1", "D3", "D3u")
TOLERANCE = 1e-6
REPEATS, REPEAT_SECONDS = 5, 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=3, help="how often both solvers take their turn on a problem (3)")
    parser.add_argument("--only", default=",".join(NAMES), metavar="PROBLEMS", help="names, with commas between them")


def solve(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: solve a problem as often as fits into a few seconds."""
    from problems import PUBLISHED
    from solver_timing import solving

    call = {"peer": solving.by_peer, "ours": solving.by_compatible}[request["solver"]]
    call(solving.small())
    runs: list[dict[str, Any]] = []
    began = perf_counter()
    while not runs or (len(runs) < REPEATS and perf_counter() - began < REPEAT_SECONDS):
        runs.append(call(PUBLISHED[request["problem"]]()))
    options = PUBLISHED[request["problem"]]().options
    tolerance = max(options.get("viol_eq_tol", TOLERANCE), options.get("viol_ineq_tol", TOLERANCE))
    return {"runs": runs, "tolerance": tolerance}


def first(record: dict[str, list[float]], good: Any) -> float | None:
    """The time of the first entry that is good."""
    entries = zip(record["seconds"], record["f"], record["violation"], strict=True)
    return next((seconds for seconds, f, violation in entries if good(f, violation)), None)


def targets(peer: dict[str, Any], tolerance: float) -> dict[str, Any]:
    """When a point counts as good as the peer's last one, in the ways described above."""
    f, violation = peer["f"], peer["violation"]
    allowed, lowest = max(violation, tolerance), f + TOLERANCE * (1 + abs(f))
    weight = 1 / peer["penalty_parameter"]
    penalty = f + weight * violation
    penalty += TOLERANCE * (1 + abs(penalty))

    def as_feasible(_: float, point_violation: float) -> bool:
        return point_violation <= allowed

    def as_low(value: float, point_violation: float) -> bool:
        return point_violation <= allowed and value + weight * point_violation <= penalty

    def as_good(value: float, point_violation: float) -> bool:
        return point_violation <= allowed and value <= lowest

    if violation <= tolerance:
        return {"target": as_good, "strict": as_good, "both": as_good}
    return {"target": as_feasible, "strict": as_low, "both": as_good}


def compare(peer: dict[str, Any], ours: dict[str, Any], tolerance: float) -> dict[str, Any]:
    """One run of each."""
    good = targets(peer, tolerance)
    hits = {name: first(ours["iterates"], test) for name, test in good.items()}
    evaluated = {"peer": first(peer["evaluations"], good["strict"]), "ours": first(ours["evaluations"], good["strict"])}
    return {
        "peer": {key: peer[key] for key in ("seconds", "f", "violation", "status", "iterations", "penalty_parameter")},
        "ours": {key: ours[key] for key in ("seconds", "f", "violation", "status", "iterations", "time")},
        "feasible": peer["violation"] <= tolerance,
        "peer_evaluations": len(peer["evaluations"]["f"]),
        "our_evaluations": len(ours["evaluations"]["f"]),
        "hits": hits,
        "evaluated": evaluated,
        "ratio": peer["seconds"] / hits["target"] if hits["target"] else None,
        "ratio_strict": peer["seconds"] / hits["strict"] if hits["strict"] else None,
        "ratio_evaluated": evaluated["peer"] / evaluated["ours"] if evaluated["peer"] and evaluated["ours"] else None,
    }


def typical(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median time."""
    return sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]


def run(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measure, round by round; what was measured, and the table."""
    names = [name for name in options.only.split(",") if name]
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number_of_round in range(options.rounds):
        for name in names:
            try:
                peer = measure("published.solve", {"solver": "peer", "problem": name}, python=options.pygranso_python)
                ours = measure("published.solve", {"solver": "ours", "problem": name})
            except WorkerError as error:
                print(f"{name}: {error}", file=sys.stderr)
                continue
            round_ = compare(typical(peer["runs"]), typical(ours["runs"]), peer["tolerance"])
            rounds[name].append(round_)
            print(
                f"{number_of_round + 1} {name}: {duration(round_['peer']['seconds'])} / {duration(round_['hits']['target'])}"
                f" = {number(round_['ratio'])}",
                file=sys.stderr,
                flush=True,
            )
    return rounds, published_table({name: runs for name, runs in rounds.items() if runs})
