"""What mechanisms and thresholds of the solver are worth: tables of solver_ablation.py, made of unpacked runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ablation.mechanisms import MECHANISMS

from rendering.tables import geometric_mean, mean_with_interval, table

ROOT = Path(__file__).resolve().parents[2]
MIN_PAYING_RATIO = 1.03
"""A mechanism pays if runs without it take more evaluations than this multiple."""
MIN_LARGE_VARIABLES = 100
"""Random problems with at least as many variables are a set of their own."""
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
    ratios: list[float]
    """Evaluations of the runs that were solved both times: with the change ÷ without."""

    @property
    def ratio(self) -> str:
        """The geometric mean of the ratios."""
        return f"{geometric_mean(self.ratios):.3f}" if self.ratios else "–"


def compare(complete: Runs, changed: Runs) -> Comparison:
    """Compare runs of the same problems."""
    before = {tuple(run["key"]): run for run in complete}
    pairs = [(before[tuple(run["key"])], run) for run in changed if tuple(run["key"]) in before]
    more = {what: sum(int(new[what]) - int(old[what]) for old, new in pairs) for what in ("solved", "proven", "false")}
    ratios = [new["evaluations"] / old["evaluations"] for old, new in pairs if old["solved"] and new["solved"]]
    return Comparison(len(pairs), more["solved"], more["proven"], more["false"], ratios)


def mechanism_table(results: dict[str, Runs]) -> str:
    """A row for each mechanism."""
    rows = []
    for name, mechanism in MECHANISMS.items():
        if name == "none" or name not in results:
            continue
        comparisons = {part: compare(of(part, results["none"]), of(part, results[name])) for part in SETS}
        paying = [SETS[part] for part, one in comparisons.items() if _pays(one)]
        pays = "on " + " and ".join(paying) if paying else f"no; kept for {mechanism.kept_for}"
        rows.append([name, mechanism.meaning, mechanism.source, *(_cell(one) for one in comparisons.values()), pays])
    return table(["mechanism", "what it does", "source", *SETS.values(), "pays"], rows)


def of(part: str, runs: Runs) -> Runs:
    """The runs of one set of problems; random ones of many variables are a set of their own."""
    return [run for run in runs if part == _set(run["key"])]


def _set(key: Sequence[Any]) -> str:
    return "large" if key[0] == "random" and key[2] >= MIN_LARGE_VARIABLES else str(key[0])


def _pays(comparison: Comparison) -> bool:
    """Whether runs are lost without the mechanism, or take clearly more evaluations."""
    worse = comparison.solved + comparison.proven < 0
    return worse or (bool(comparison.ratios) and float(comparison.ratio) > MIN_PAYING_RATIO)


def _cell(comparison: Comparison) -> str:
    return mean_with_interval(comparison.ratios) + _counts(comparison)


def _counts(comparison: Comparison) -> str:
    counts = {"solved": comparison.solved, "proven": comparison.proven, "false": comparison.false}
    return "".join(f", {count:+d} {what}" for what, count in counts.items() if count)


def threshold_table(results: dict[str, Runs]) -> str:
    """A row for each threshold."""
    sys.path.insert(0, str(ROOT / "src"))
    from nonsmooth.thresholds import meanings

    rows = []
    for name, (value, (low, high), meaning) in meanings().items():
        cells = []
        for factor in (0.5, 2.0):
            other = int(value * factor) if isinstance(value, int) else value * factor
            runs = results.get(f"{name}={other}")
            comparison = None if runs is None else compare(results["none"], runs)
            cells.append("–" if comparison is None else comparison.ratio + _counts(comparison))
        rows.append([f"`{name}`", f"{value:g}", meaning, f"{low:g} to {high:g}", *cells])
    return table(["threshold", "value", "meaning", "range", "at half", "at twice"], rows)


def unit_table(runs: Runs) -> str:
    """A row for each range of units: the same problems, rescaled at random."""
    rows = []
    for decades in sorted({run["decades"] for run in runs}):
        own = [run for run in runs if run["decades"] == decades]
        counts = [sum(run[what] for run in own) for what in ("solved", "proven", "false")]
        rows.append([f"10^±{decades:g}", *counts, f"{geometric_mean(run['evaluations'] for run in own):.0f}"])
    return table(["units off by up to", "solved", "proven", "false", "evaluations"], rows)


def blocks(mechanisms: dict[str, Runs], thresholds: dict[str, Runs], rescaled: Runs) -> dict[str, str]:
    """The blocks of docs/explanation/solver-mechanisms.md by their names."""
    problems = len({(run["family"], run["size"], run["seed"]) for run in rescaled})
    counts = "; ".join(f"{len(of(part, mechanisms['none']))} {name}" for part, name in SETS.items())
    return {
        "mechanisms": f"Problems: {counts}.\n\n{mechanism_table(mechanisms)}",
        "units": f"{problems} problems.\n\n{unit_table(rescaled)}",
        "thresholds": f"{len(thresholds['none'])} runs each.\n\n{threshold_table(thresholds)}",
    }
