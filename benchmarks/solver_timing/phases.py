"""Where the time goes: each phase of a run as a share of it, beside what is known of PyGRANSO.

The phases are those of `Result.time`. For PyGRANSO shared/facts/pygranso.md has the run time ÷ (evaluations × one forward
and one backward pass per output), so the share of the evaluations is known and everything else is one block. Of that block
it says: quadratic programs take 26 to 78 % of a run, updates 62 % of D3, printing up to 6 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from solver_timing.processes import WorkerError, measure
from solver_timing.tables import duration, table

PHASES = ("values", "gradients", "Jacobians", "QP", "directions", "search", "Hessian", "stationarity", "other")
PEER = {
    "A1": (0.113, 3.9), "A1r": (0.199, 5.7), "A2": (39.9, 1.2), "A3": (1.96, 7.0), "B1": (0.026, 4.3), "B2": (0.543, 14.4),
    "B3": (0.702, 6.9), "B3big": (2.26, 3.9), "C1": (1.31, 7.3), "C1big": (8.14, 4.6), "C2": (6.82, 8.4), "C3": (0.223, 6.2),
    "D1": (27.9, 1.3), "D3": (8.72, 12.1), "D3u": (3.04, 3.4),
}  # fmt: skip
"""Seconds, and seconds ÷ what the evaluations cost by themselves; A2 with another plant than ours."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--rounds", type=int, default=1, help="processes for each problem (1)")
    parser.add_argument("--only", default=",".join(PEER), metavar="PROBLEMS", help="names, with commas between them")
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
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            try:
                found[name].append(measure("phases.solve", {"problem": name}))
            except WorkerError as error:
                print(f"{name}: {error}", file=sys.stderr)
    shares = {name: mean_shares(runs) for name, runs in found.items() if runs}
    if options.plot:
        try:
            draw(shares, options.plot)
        except ImportError:
            print("the picture is not drawn: pip install matplotlib", file=sys.stderr)
    return {"runs": found, "peer": PEER}, report(found, shares)


def mean_shares(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The mean share of each phase; phases this script does not know are added to "other"."""
    shares = dict.fromkeys(PHASES, 0.0)
    for one in runs:
        total = sum(one["time"].values())
        for phase, seconds in one["time"].items():
            shares[phase if phase in shares else "other"] += seconds / total / len(runs)
    return shares


def report(found: dict[str, list[dict[str, Any]]], shares: dict[str, dict[str, float]]) -> str:
    """The table, in percent."""
    rows = []
    for name, share in shares.items():
        peer = PEER.get(name)
        rows.append(
            [
                name,
                duration(statistics.median(one["seconds"] for one in found[name])),
                *(f"{100 * share[phase]:.0f}" for phase in PHASES),
                "–" if peer is None else duration(peer[0]),
                "–" if peer is None else f"{100 / peer[1]:.0f}",
                "–" if peer is None else f"{100 - 100 / peer[1]:.0f}",
            ]
        )
    headings = ["problem", "run", *(f"{phase}, %" for phase in PHASES)]
    return table([*headings, "PyGRANSO (facts)", "its evaluations, %", "everything else, %"], rows)


def draw(shares: dict[str, dict[str, float]], path: Path) -> None:
    """Two stacked bars for each problem: ours, and PyGRANSO's as far as it is known."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(shares)
    figure, axes = pyplot.subplots(figsize=(10, 0.5 * len(names) + 1.6), layout="constrained")
    colors = pyplot.get_cmap("tab10").colors
    left = [0.0] * len(names)
    heights = [index - 0.2 for index in range(len(names))]
    for color, phase in zip(colors, PHASES, strict=False):
        widths = [100 * shares[name][phase] for name in names]
        axes.barh(heights, widths, height=0.38, left=left, color=color, label=phase)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    known = [(index + 0.2, 100 / PEER[name][1]) for index, name in enumerate(names) if name in PEER]
    places, evaluations = [place for place, _ in known], [share for _, share in known]
    axes.barh(places, evaluations, height=0.38, color="0.45", label="PyGRANSO: evaluations")
    rest = [100 - share for share in evaluations]
    axes.barh(places, rest, height=0.38, left=evaluations, color="0.8", label="PyGRANSO: everything else")
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="% of the run", xlim=(0, 100))
    axes.invert_yaxis()
    axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
