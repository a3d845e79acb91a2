"""The page of the documentation that says what mechanisms and thresholds are worth, made from stored results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from solver_random import _with_interval

from ablation.mechanisms import MECHANISMS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "solver-mechanisms.md"
RESCALING = ROOT / "benchmarks" / "data" / "solver_rescaling.json"
"""Runs of solver_random.py with several --decades."""
PAYS = 1.03
"""A mechanism without which runs take more evaluations than so many times those with it pays."""
LARGE = 100
"""Variables from which on random problems are a set of their own."""
SETS = {
    "random": "random, up to 20 variables",
    "large": "random, 100 variables and more",
    "published": "published",
    "peer": "PyGRANSO's examples",
    "kinked": "kinked constraints",
}
Runs = Sequence[dict[str, Any]]


class Comparison(NamedTuple):
    """Runs with a change beside the same runs without."""

    runs: int
    solved: int
    """More or fewer than without the change."""
    proven: int
    false: int
    ratio: str
    """Evaluations over the runs that were solved both times: with the change ÷ without, and its interval."""


def compare(complete: Runs, changed: Runs) -> Comparison:
    """Compare runs of the same problems."""
    before = {tuple(run["key"]): run for run in complete}
    pairs = [(before[tuple(run["key"])], run) for run in changed if tuple(run["key"]) in before]
    more = {what: sum(int(new[what]) - int(old[what]) for old, new in pairs) for what in ("solved", "proven", "false")}
    ratios = [new["evaluations"] / old["evaluations"] for old, new in pairs if old["solved"] and new["solved"]]
    return Comparison(len(pairs), more["solved"], more["proven"], more["false"], _with_interval(ratios))


def mechanism_table(results: dict[str, Runs]) -> list[str]:
    """A row for each mechanism."""
    lines = [
        "| mechanism | what it does | source | " + " | ".join(SETS.values()) + " | pays |",
        "|---|---|---|" + "---|" * len(SETS) + "---|",
    ]
    for name, mechanism in MECHANISMS.items():
        if name == "none" or name not in results:
            continue
        found = {part: compare(of(part, results["none"]), of(part, results[name])) for part in SETS}
        cells = " | ".join(_cell(one) for one in found.values())
        paying = [SETS[part] for part, one in found.items() if _pays(one)]
        pays = "on " + " and ".join(paying) if paying else f"no; kept for {mechanism.kept_for}"
        lines.append(f"| {name} | {mechanism.meaning} | {mechanism.source} | {cells} | {pays} |")
    return lines


def of(part: str, runs: Runs) -> Runs:
    """The runs of one set of problems; random ones of many variables are a set of their own."""
    return [run for run in runs if part == _set(run["key"])]


def _set(key: Sequence[Any]) -> str:
    return "large" if key[0] == "random" and key[2] >= LARGE else str(key[0])


def _pays(found: Comparison) -> bool:
    """Whether runs are lost without the mechanism, or take clearly more evaluations."""
    worse = found.solved + found.proven < 0
    return worse or (found.ratio != "–" and float(found.ratio.split()[0]) > PAYS)


def _cell(found: Comparison) -> str:
    counts = {"solved": found.solved, "proven": found.proven, "false": found.false}
    return found.ratio + "".join(f", {count:+d} {what}" for what, count in counts.items() if count)


def threshold_table(results: dict[str, Runs]) -> list[str]:
    """A row for each threshold."""
    sys.path.insert(0, str(ROOT / "src"))
    from nonsmooth.thresholds import meanings

    lines = ["| threshold | value | meaning | range | at half | at twice |", "|---|---|---|---|---|---|"]
    for name, (value, (low, high), meaning) in meanings().items():
        cells = []
        for factor in (0.5, 2.0):
            other = int(value * factor) if isinstance(value, int) else value * factor
            runs = results.get(f"{name}={other}")
            cells.append("–" if runs is None else _short(compare(results["none"], runs)))
        lines.append(f"| `{name}` | {value:g} | {meaning} | {low:g} to {high:g} | {cells[0]} | {cells[1]} |")
    return lines


def rescaling_table(runs: Runs) -> list[str]:
    """A row for each range of units: the same problems, rescaled at random."""
    lines = ["| units off by up to | solved | proven | false | evaluations |", "|---|---|---|---|---|"]
    for decades in sorted({run["decades"] for run in runs}):
        these = [run for run in runs if run["decades"] == decades]
        counts = " | ".join(str(sum(run[what] for run in these)) for what in ("solved", "proven", "false"))
        mean = exp(fmean(log(run["evaluations"]) for run in these))
        lines.append(f"| 10^±{decades:g} | {counts} | {mean:.0f} |")
    return lines


def _short(found: Comparison) -> str:
    counts = {"solved": found.solved, "proven": found.proven, "false": found.false}
    return found.ratio.split()[0] + "".join(f", {count:+d} {what}" for what, count in counts.items() if count)


def write_page(mechanisms: dict[str, Runs], thresholds: dict[str, Runs]) -> None:
    """Put the tables between the marks of the page."""
    text = PAGE.read_text()
    rescaled = json.loads(RESCALING.read_text())
    problems = len({(run["family"], run["size"], run["seed"]) for run in rescaled})
    counts = [f"{len(of(part, mechanisms['none']))} {name}" for part, name in SETS.items()]
    for mark, told, lines in (
        ("mechanisms", f"Problems: {'; '.join(counts)}.", mechanism_table(mechanisms)),
        ("units", f"{problems} problems.", rescaling_table(rescaled)),
        ("thresholds", f"{len(thresholds['none'])} runs each.", threshold_table(thresholds)),
    ):
        head, _, rest = text.partition(f"<!-- {mark} -->\n")
        _, _, tail = rest.partition(f"<!-- end of {mark} -->")
        text = head + f"<!-- {mark} -->\n" + "\n".join(["", told, "", *lines, "", ""]) + f"<!-- end of {mark} -->" + tail
    PAGE.write_text(text)
