"""Tables and pictures of solver_speed.py: scale, phases and gpu.

For each there is a function that makes records of what was measured (transcribed results are such records already), and one
that makes a Markdown table of records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rendering.pictures import new_figure, save_figure
from rendering.tables import duration, largest, median, number, percentages, spread, status_words, table

Record = dict[str, Any]
Rounds = list[dict[str, Any]]

PHASES = ("values", "gradients", "Jacobians", "QP", "directions", "search", "Hessian", "stationarity", "other")
PEER_PHASES = {
    "A1": (0.113, 3.9), "A1r": (0.199, 5.7), "A2": (39.9, 1.2), "A3": (1.96, 7.0), "B1": (0.026, 4.3), "B2": (0.543, 14.4),
    "B3": (0.702, 6.9), "B3big": (2.26, 3.9), "C1": (1.31, 7.3), "C1big": (8.14, 4.6), "C2": (6.82, 8.4), "C3": (0.223, 6.2),
    "D1": (27.9, 1.3), "D3": (8.72, 12.1), "D3u": (3.04, 3.4),
}  # fmt: skip
"""PyGRANSO's seconds, and these ÷ what its evaluations cost by themselves, from another day; A2 with another plant."""


def scale_records(rounds: Mapping[str, Rounds]) -> list[Record]:
    """A record for each n."""
    return [
        {
            "size": int(size),
            "milliseconds_per_iteration": [1e3 * run["seconds_per_iteration"] for run in runs],
            "memory_mib": [run["memory"] / 2**20 for run in runs],
            "pairs_mib": runs[-1]["pairs"] / 2**20,
            **{key: runs[-1][key] for key in ("evaluation_seconds", "iterations", "evaluations", "status", "gap")},
            "shares_percent": percentages(runs[-1]["time"]),
            "peak_was_reached": runs[-1]["peak_was_reached"],
        }
        for size, runs in rounds.items()
        if runs
    ]


def scale_table(records: Sequence[Record]) -> str:
    """Time and memory. Growth is the exponent between two rows: 1 is linear."""
    rows, before = [], None
    for one in records:
        each = median(one["milliseconds_per_iteration"])
        growth = None if before is None else math.log(each / before[1]) / math.log(one["size"] / before[0])
        before = (one["size"], each)
        rows.append([
            f"{one['size']:,}",
            f"{spread(one['milliseconds_per_iteration'])} ms",
            number(growth, 2),
            duration(one["evaluation_seconds"]),
            f"{one['iterations']}, {one['evaluations']}",
            f"{spread(one['memory_mib'])} MiB{'' if one['peak_was_reached'] else ' (below the peak of the start)'}",
            spread([memory / one["pairs_mib"] for memory in one["memory_mib"]]),
            f"{status_words(one['status'])}, {one['gap']:.0e}",
            largest(one["shares_percent"], 3),
        ])  # fmt: skip
    headings = [
        "n", "per iteration", "growth", "one value and gradient", "iterations, evaluations", "memory", "memory ÷ 20 pairs",
        "status, relative gap", "most time in",
    ]  # fmt: skip
    return table(headings, rows)


def draw_scale(records: Sequence[Record], path: Path, digest: str = "") -> None:
    """Time per iteration and memory against n, both axes logarithmic."""
    sizes = [one["size"] for one in records]
    figure = new_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    left.loglog(sizes, [1e-3 * median(one["milliseconds_per_iteration"]) for one in records], "o-", label="one iteration")
    left.loglog(sizes, [one["evaluation_seconds"] for one in records], "s--", label="one value and gradient by itself")
    left.set(xlabel="n", ylabel="seconds", title="Time")
    pairs = [one["pairs_mib"] for one in records]
    right.loglog(sizes, [median(one["memory_mib"]) for one in records], "o-", label="peak memory of the run")
    right.loglog(sizes, pairs, "s--", label="the 20 pairs")
    right.loglog(sizes, [3 * one for one in pairs], ":", color="gray", label="3 times the pairs")
    right.set(xlabel="n", ylabel="MiB", title="Memory")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path, digest)


def phase_records(rounds: Mapping[str, Rounds]) -> list[Record]:
    """A record for each problem; phases that this script does not know are added to "other"."""
    records = []
    for name, runs in rounds.items():
        if not runs:
            continue
        shares = dict.fromkeys(PHASES, 0.0)
        for run in runs:
            for phase, share in percentages(run["time"]).items():
                shares[phase if phase in shares else "other"] += share / len(runs)
        seconds, factor = PEER_PHASES.get(name, (None, None))
        records.append({
            "problem": name,
            "run_seconds": [run["seconds"] for run in runs],
            "shares_percent": shares,
            "peer_seconds": seconds,
            "peer_evaluations_percent": None if factor is None else 100 / factor,
        })  # fmt: skip
    return records


def phase_table(records: Sequence[Record]) -> str:
    """The share of each phase, in percent."""
    rows = []
    for one in records:
        share = one["peer_evaluations_percent"]
        rows.append([
            one["problem"],
            duration(median(one["run_seconds"])),
            *(f"{one['shares_percent'][phase]:.0f}" for phase in PHASES),
            duration(one["peer_seconds"]),
            "–" if share is None else f"{share:.0f}",
        ])  # fmt: skip
    return table(["problem", "run", *(f"{phase}, %" for phase in PHASES), "PyGRANSO", "its evaluations, %"], rows)


def draw_phases(records: Sequence[Record], path: Path, digest: str = "") -> None:
    """Two stacked bars for each problem: ours, and PyGRANSO's as far as it is known."""
    import matplotlib

    figure = new_figure(10, 0.5 * len(records) + 1.6)
    axes = figure.subplots()
    left = [0.0] * len(records)
    heights = [index - 0.2 for index in range(len(records))]
    for color, phase in zip(matplotlib.colormaps["tab10"].colors, PHASES, strict=False):
        widths = [one["shares_percent"][phase] for one in records]
        axes.barh(heights, widths, height=0.38, left=left, color=color, label=phase)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    known = [(index + 0.2, one["peer_evaluations_percent"]) for index, one in enumerate(records) if one["peer_seconds"]]
    places, evaluations = [place for place, _ in known], [share for _, share in known]
    axes.barh(places, evaluations, height=0.38, color="0.45", label="PyGRANSO: evaluations")
    rest = [100 - share for share in evaluations]
    axes.barh(places, rest, height=0.38, left=evaluations, color="0.8", label="PyGRANSO: everything else")
    axes.set(yticks=range(len(records)), yticklabels=[one["problem"] for one in records], xlabel="% of the run", xlim=(0, 100))
    axes.invert_yaxis()
    axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    save_figure(figure, path, digest)


def gpu_records(measured: Mapping[str, Any]) -> list[Record]:
    """A record for each problem and kind of compilation."""
    records = []
    for name, kinds in measured["ours"].items():
        for kind, runs in kinds.items():
            if not runs:
                continue
            last, shares = runs[-1], measured["busy"].get(name)
            records.append({
                "problem": name,
                "compile": kind,
                "milliseconds_per_iteration": [run["milliseconds_per_iteration"] for run in runs],
                "run_seconds": [run["seconds"] for run in runs],
                **{key: last[key] for key in ("iterations", "evaluations", "f", "violation", "status")},
                "shares_percent": percentages(last["time"]),
                "peer_seconds": [run["seconds"] for run in measured["peer"].get(name, ())],
                "busy": None if shares is None or kind != "auto" else {
                    "device_seconds": shares["device_seconds"], "run_seconds": shares["seconds"],
                },
            })  # fmt: skip
    return records


def gpu_table(records: Sequence[Record]) -> str:
    """Runs on a GPU."""
    rows = []
    for one in records:
        run, busy = median(one["run_seconds"]), one["busy"]
        rows.append([
            one["problem"],
            one["compile"],
            f"**{spread(one['milliseconds_per_iteration'])}**",
            duration(run),
            f"{one['iterations']}, {one['evaluations']}",
            duration(median(one["peer_seconds"])) if one["peer_seconds"] else "–",
            number(median(one["peer_seconds"]) / run) if one["peer_seconds"] else "–",
            f"{one['f']:.8g}, {one['violation']:.0e}",
            status_words(one["status"]),
            largest(one["shares_percent"], 3),
            "–" if busy is None else f"{100 - 100 * busy['device_seconds'] / busy['run_seconds']:.0f} %",
        ])  # fmt: skip
    headings = [
        "problem", "compile", "ms per iteration", "run", "iterations, evaluations", "PyGRANSO", "PyGRANSO ÷ ours",
        "f, violation", "status", "most time in", "device idle",
    ]  # fmt: skip
    return table(headings, rows)
