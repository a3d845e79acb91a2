"""Tables of solver_speed.py: published, overhead, tiers and constraints.

For each there is a function that makes records of what was measured (transcribed results are such records already), and one
that makes a Markdown table of records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rendering.tables import duration, geometric_mean, largest, median, number, percentages, spread, status_words, table

Record = dict[str, Any]
Rounds = list[dict[str, Any]]

PEER_MILLISECONDS = {10: 39.0, 100: 590.0, 500: 2220.0, 1000: 7988.0}
"""PyGRANSO's time per iteration for some numbers of inequalities, measured on another day."""
RATIOS = {
    "ratio": "PyGRANSO's whole run ÷ ours until as good",
    "ratio_strict": "the same, with the stricter target where PyGRANSO ends infeasible",
    "ratio_evaluated": "both until the first point evaluated that is as good",
}
"""The three ratios of `published`."""


def published_means(rounds: dict[str, Rounds]) -> dict[str, tuple[float, str, float, int]]:
    """For each ratio its geometric mean, the problem with the smallest one, that one, and how many problems there are."""
    means = {}
    for kind in RATIOS:
        ratios = _medians(rounds, kind)
        if ratios:
            lowest = min(ratios, key=lambda name: ratios[name])
            means[kind] = geometric_mean(ratios.values()), lowest, ratios[lowest], len(ratios)
    return means


def published_table(rounds: dict[str, Rounds]) -> str:
    """Each problem, and the means."""
    headings = [
        "problem", "PyGRANSO", "ours until as good", "ratio", "both until as good", "our whole run",
        "PyGRANSO's end: f, violation", "our end: f, violation", "evaluations: PyGRANSO / ours",
    ]  # fmt: skip
    lines = [table(headings, [_published_row(name, runs) for name, runs in rounds.items()]), ""]
    for kind, (mean, lowest, ratio, count) in published_means(rounds).items():
        lines.append(f"- Geometric mean over {count} of {len(rounds)} problems, {RATIOS[kind]}: **{mean:.3g}**; "
                     f"smallest {ratio:.3g} ({lowest})")  # fmt: skip
    totals = [sum(median([run[solver]["seconds"] for run in runs]) for runs in rounds.values()) for solver in ("peer", "ours")]
    reached = sum(median([run["hits"]["target"] or math.inf for run in runs]) for runs in rounds.values())
    lines.append(
        f"- Total of all runs: PyGRANSO {duration(totals[0])}; ours {duration(totals[1])}, {duration(reached)} until as good"
    )
    lines += [_infeasible_end(name, runs) for name, runs in rounds.items() if not runs[-1]["feasible"]]
    return "\n".join(lines)


def _infeasible_end(name: str, runs: Rounds) -> str:
    hits, strict = runs[-1]["hits"], [run["ratio_strict"] for run in runs if run["ratio_strict"]]
    return (
        f"- ¹ {name}: PyGRANSO ends at an infeasible point (μ = {runs[-1]['peer']['penalty_parameter']:.2g}), so the target "
        f"is its violation, which we reach after {duration(hits['target'])}. Its f + violation/μ we reach after "
        f"{duration(hits['strict'])} (ratio {spread(strict)})"
    )


def _medians(rounds: dict[str, Rounds], kind: str) -> dict[str, float]:
    """The median ratio of every problem whose target was reached in all rounds."""
    ratios = {name: [run[kind] for run in runs] for name, runs in rounds.items()}
    return {name: median(values) for name, values in ratios.items() if None not in values}


def _published_row(name: str, runs: Rounds) -> list[str]:
    last = runs[-1]
    hits = [run["hits"]["target"] for run in runs]
    return [
        name if last["feasible"] else f"{name} ¹",
        duration(median([run["peer"]["seconds"] for run in runs])),
        "not reached" if None in hits else duration(median(hits)),
        f"**{spread([run['ratio'] for run in runs if run['ratio']])}**",
        spread([run["ratio_evaluated"] for run in runs if run["ratio_evaluated"]]),
        duration(median([run["ours"]["seconds"] for run in runs])),
        f"{last['peer']['f']:.6g}, {last['peer']['violation']:.0e}, {last['peer']['status']}",
        f"{last['ours']['f']:.6g}, {last['ours']['violation']:.0e}, {status_words(last['ours']['status'])}",
        f"{last['peer_evaluations']} / {last['our_evaluations']}",
    ]


def overhead_records(rounds: dict[str, Rounds]) -> list[Record]:
    """A record for each problem."""
    return [
        {
            "problem": name,
            "ratio": [run["ratio"] for run in runs],
            "strict_ratio": [run["strict"] for run in runs],
            "run_seconds": [run["seconds"] for run in runs],
            "iteration_seconds": [run["seconds"] / max(1, run["iterations"]) for run in runs],
            "counts": runs[-1]["counts"],
            "evaluation_seconds": {kind: runs[-1]["bare"][kind] for kind in ("values", "gradients", "jacobians")},
            "shares_percent": percentages(runs[-1]["time"]),
            "status": runs[-1]["status"],
        }
        for name, runs in rounds.items()
        if runs
    ]


def overhead_table(records: Sequence[Record]) -> str:
    """The time of runs beside that of their evaluations."""
    kinds = ("values", "gradients", "jacobians")
    rows = [
        [
            one["problem"],
            f"**{spread(one['ratio'])}**",
            duration(median(one["run_seconds"])),
            duration(median(one["iteration_seconds"])),
            " / ".join(str(one["counts"][kind]) for kind in kinds),
            " / ".join(duration(one["evaluation_seconds"][kind]) for kind in kinds),
            largest(one["shares_percent"], 4),
            status_words(one["status"]),
        ]
        for one in records
    ]
    headings = [
        "problem", "run ÷ evaluations", "run", "per iteration", "values / gradients / Jacobians", "each by itself",
        "most time in", "status",
    ]  # fmt: skip
    return table(headings, rows)


def tier_records(rounds: dict[str, list[dict[str, dict[str, Any]]]]) -> list[Record]:
    """A record for each problem of one part."""
    records = []
    for name, turns in rounds.items():
        last = turns[-1]
        has_first = "first" in last["auto"]
        text = last["auto"]["compilation"]
        records.append({
            "problem": name,
            **{f"{tier}_seconds": [turn[tier]["seconds"] for turn in turns] for tier in ("never", "auto")},
            "ratio": [turn["never"]["seconds"] / turn["auto"]["seconds"] for turn in turns],
            "first_ratio": [turn["never"]["first"] / turn["auto"]["first"] for turn in turns] if has_first else [],
            "evaluations": [last[tier]["evaluations"] for tier in ("never", "auto")],
            "f": [last[tier]["f"] for tier in ("never", "auto")],
            "compilation": text.splitlines()[0] if text else None,
        })  # fmt: skip
    return records


def tier_table(records: Sequence[Record]) -> str:
    """`compile="never"` beside `compile="auto"`."""
    rows = [
        [
            one["problem"],
            duration(median(one["never_seconds"])),
            duration(median(one["auto_seconds"])),
            f"**{spread(one['ratio'])}**",
            spread(one["first_ratio"]),
            " / ".join(map(str, one["evaluations"])),
            one["compilation"] or "–",
        ]
        for one in records
    ]
    headings = ["problem", "never", "auto", "never ÷ auto", "first run only", "evaluations: never / auto", "what auto did"]
    ratios = [median(one["ratio"]) for one in records]
    mean = f"\n\nGeometric mean of never ÷ auto {geometric_mean(ratios):.3g}, smallest {min(ratios):.3g}." if ratios else ""
    return table(headings, rows) + mean


def constraint_records(rounds: dict[str, dict[str, Rounds]]) -> list[Record]:
    """A record for each number of inequalities."""
    records = []
    for count, runs in rounds.items():
        if not runs["ours"]:
            continue
        last = runs["ours"][-1]
        peer = [run["milliseconds_per_iteration"] for run in runs["peer"]]
        records.append({
            "constraints": int(count),
            "milliseconds_per_iteration": [run["milliseconds_per_iteration"] for run in runs["ours"]],
            "run_seconds": [run["seconds"] for run in runs["ours"]],
            "evaluations": last["counts"]["values"],
            **{key: last[key] for key in ("iterations", "status", "feasible", "gap", "violation", "programs")},
            "shares_percent": percentages(last["time"]),
            "peer_milliseconds_per_iteration": peer or [PEER_MILLISECONDS.get(int(count), math.nan)],
            "peer_measured": bool(runs["peer"]),
        })  # fmt: skip
    return records


def constraint_table(records: Sequence[Record]) -> str:
    """Time per iteration as the number of inequalities grows."""
    rows = []
    for one in records:
        each, peer = one["milliseconds_per_iteration"], one["peer_milliseconds_per_iteration"]
        rows.append([
            one["constraints"],
            f"**{spread(each)}**",
            spread(peer, 4),
            number(median(peer) / median(each)),
            duration(median(one["run_seconds"])),
            f"{one['iterations']}, {one['evaluations']}",
            f"{status_words(one['status'])}, {'feasible' if one['feasible'] else 'infeasible'}",
            f"{number(one['gap'], 2)}, {one['violation']:.0e}",
            largest(one["shares_percent"], 3),
        ])  # fmt: skip
    headings = [
        "inequalities", "ms per iteration", "PyGRANSO, ms per iteration", "ratio", "run", "iterations, evaluations", "status",
        "gap, violation", "most time in",
    ]  # fmt: skip
    return table(headings, rows)
