"""Data profiles, their picture, and the page that explains them, all from the stored results."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rendering.pictures import new_figure, save_figure
from rendering.tables import table

Results = dict[str, dict[str, dict[str, Any]]]
"""solver -> problem -> the record of the run"""

TITLES = {
    "nonsmooth": "nonsmooth",
    "pygranso": "PyGRANSO",
    "pygranso_tight": "PyGRANSO tight",
    "ncopt": "ncOPT",
    "slsqp": "SLSQP",
}
COLORS = {"nonsmooth": "#0072b2", "pygranso": "#d55e00", "pygranso_tight": "#e69f00", "ncopt": "#009e73", "slsqp": "#555555"}
STYLES = {"nonsmooth": "-", "pygranso": "--", "pygranso_tight": (0, (5, 1)), "ncopt": "-.", "slsqp": ":"}
CLAIMS = {
    "nonsmooth": ("STATIONARY",),
    "pygranso": ("code 0",),
    "pygranso_tight": ("code 0",),
    "ncopt": ("optimal",),
    "slsqp": ("Optimization terminated successfully",),
}
"""How each solver reports convergence."""
BUDGETS = (10, 30, 100, 300)
"""Evaluations by n + 1."""


class Problems:
    """The problems by name, as they are stored with the results."""

    def __init__(self, problems: dict[str, dict[str, Any]]) -> None:
        self.size = {name: one["n"] for name, one in problems.items()}
        self.constraints = {name: f"{one['inequalities']}/{one['equalities']}" for name, one in problems.items()}
        self.smooth = [name for name, one in problems.items() if one["smooth"]]
        self.nonsmooth = [name for name, one in problems.items() if not one["smooth"]]
        self.convex = [name for name, one in problems.items() if one["convex"]]
        self.names = list(problems)


def budgets(results: dict[str, dict[str, Any]], names: Iterable[str], sizes: dict[str, int] | None) -> list[float]:
    """The budgets at which problems were solved, ascending: evaluations, or evaluations / (n + 1) with sizes."""
    hits = ((name, results.get(name, {}).get("hit")) for name in names)
    return sorted(hit / (sizes[name] + 1 if sizes else 1) for name, hit in hits if hit is not None)


def draw(samples: dict[str, Any], path: Path, digest: str = "") -> None:
    """Two rows of data profiles: all problems with the solvers for nonsmooth ones, smooth problems with SLSQP too."""
    results, problems = samples["results"], Problems(samples["problems"])
    figure = new_figure(9.0, 6.4)
    axes = figure.subplots(2, 2, sharey=True)
    rows = (
        (f"all {len(problems.names)} problems", problems.names, [s for s in results if s != "slsqp"]),
        (f"the {len(problems.smooth)} smooth ones", problems.smooth, list(results)),
    )
    for row, (title, names, solvers) in zip(axes, rows, strict=True):
        for panel, sizes, unit in zip(row, (problems.size, None), ("evaluations / (n + 1)", "evaluations"), strict=True):
            most = max([10.0, *(b for solver in solvers for b in budgets(results[solver], names, sizes)[-1:])])
            for solver in solvers:
                solved = budgets(results[solver], names, sizes)
                heights = [(index + 1) / len(names) for index in range(len(solved))]
                panel.step(
                    [*solved, most], [*heights, heights[-1] if heights else 0.0], where="post", linestyle=STYLES[solver],
                    color=COLORS[solver], label=f"{TITLES[solver]} ({len(solved)})",
                )  # fmt: skip
            panel.set_xscale("log")
            panel.set_xlabel(unit)
            panel.set_ylim(0.0, 1.02)
            panel.set_title(title, fontsize="medium")
            panel.grid(visible=True, alpha=0.3)
            panel.legend(loc="lower right", fontsize="small")
        row[0].set_ylabel("fraction solved")
    save_figure(figure, path, digest)


@dataclass(frozen=True)
class Score:
    """What one solver came to on a set of problems."""

    solver: str
    problems: int
    solved: int
    within: tuple[int, ...]
    """Problems solved within each of BUDGETS."""
    median_evaluations: float | None
    """Over the problems that all solvers of the set solved."""
    common: int
    """How many these are."""
    false_reports: int
    false_reports_on_convex: int


def scores(results: Results, problems: Problems, names: Sequence[str], solvers: Sequence[str]) -> list[Score]:
    """The score of each solver on the problems named."""
    common = [name for name in names if all(results[s].get(name, {}).get("hit") is not None for s in solvers)]
    group = []
    for solver in solvers:
        own = results[solver]
        solved = budgets(own, names, problems.size)
        wrong = [
            name for name in names if own.get(name, {}).get("hit") is None and own.get(name, {}).get("status") in CLAIMS[solver]
        ]
        group.append(
            Score(
                solver=TITLES[solver],
                problems=len(names),
                solved=len(solved),
                within=tuple(sum(budget <= limit for budget in solved) for limit in BUDGETS),
                median_evaluations=statistics.median(own[name]["hit"] for name in common) if common else None,
                common=len(common),
                false_reports=len(wrong),
                false_reports_on_convex=sum(name in problems.convex for name in wrong),
            )
        )
    return group


def groups(samples: dict[str, Any]) -> list[tuple[str, list[Score]]]:
    """All, nonsmooth and smooth problems with the scores of the solvers that were run on them."""
    results, problems = samples["results"], Problems(samples["problems"])
    others = [solver for solver in results if solver != "slsqp"]
    return [
        (f"All {len(problems.names)} problems", scores(results, problems, problems.names, others)),
        (f"The {len(problems.nonsmooth)} nonsmooth ones", scores(results, problems, problems.nonsmooth, others)),
        (f"The {len(problems.smooth)} smooth ones", scores(results, problems, problems.smooth, list(results))),
    ]


def summary(group: Sequence[Score]) -> str:
    """The table of one set of problems."""
    rows = [
        (
            one.solver, one.problems, f"**{one.solved}**", *one.within,
            "–" if one.median_evaluations is None else f"{one.median_evaluations:g}",
            f"{one.false_reports}, {one.false_reports_on_convex}",
        )
        for one in group
    ]  # fmt: skip
    limits = [f"≤ {limit} (n+1)" for limit in BUDGETS]
    median = f"median evaluations, {group[0].common} solved by all"
    return table(["solver", "problems", "solved", *limits, median, "false convergence reports: all, convex"], rows)


def readme_table(samples: dict[str, Any]) -> str:
    """One table of all sets of problems."""
    sets = groups(samples)
    by_solver = {title: {one.solver: one for one in group} for title, group in sets}
    rows = []
    for solver in dict.fromkeys(one.solver for _, group in sets for one in group):
        columns = [group.get(solver) for group in by_solver.values()]
        cells = [
            "—" if one is None else f"{one.solved} of {one.problems}, median {one.median_evaluations:g}" for one in columns
        ]
        first = next(one for one in columns if one is not None)
        rows.append([solver, *cells, f"{first.false_reports}, {first.false_reports_on_convex}"])
    return table(["Solver", "All", "Nonsmooth", "Smooth", "False convergence reports: all, convex"], rows)


def cell(result: dict[str, Any] | None, best: int | None) -> str:
    """Evaluations to the solution, in bold if fewest; otherwise what was reached and how it ended."""
    if result is None:
        return ""
    if result["hit"] is not None:
        return f"**{result['hit']}**" if result["hit"] == best else str(result["hit"])
    if result["gap"] is not None:
        reached = f"gap {result['gap']:.0e}"
    elif result["violation"] is not None:
        reached = f"violation {result['violation']:.0e}"
    else:
        reached = "nothing known"
    status = result["status"].replace("|", "/").replace("\n", " ")
    return f"{reached}; {status if len(status) <= 40 else status[:39] + '…'}"


def details(results: Results, problems: Problems) -> str:
    """Every problem."""
    rows = []
    for name in problems.names:
        runs = [results[solver].get(name) for solver in results]
        best = min((one["hit"] for one in runs if one and one["hit"] is not None), default=None)
        rows.append((f"`{name}`", problems.size[name], problems.constraints[name], *(cell(one, best) for one in runs)))
    return table(["problem", "n", "ci/ce", *(TITLES[solver] for solver in results)], rows)


INTRODUCTION = """\
# How many evaluations it takes: solvers side by side

<!-- Written by `make results`; do not edit. -->

![Data profiles: fraction of problems solved against the budget in evaluations](../images/solver-quality.svg)

A data profile shows, for every budget, the fraction of problems a solver has solved within it. The budget on the
left is in evaluations divided by n + 1, so that one curve covers small and large problems; on the right it is in plain
evaluations. Higher is better, and further left is better. The legend has the number of problems solved.

A problem is solved at the first point **evaluated** with violation ≤ 1e-6 and f ≤ f* + 1e-6·max(1, |f*|), whether or not
the solver noticed. The same wrapper counts the calls of the function in every process, so the count does not depend on a
solver's own statistics.
"""

CLAIMED = """
The last column counts runs that ended with a report of convergence although the solver had not evaluated any solution.
On a convex problem that report is wrong at this accuracy; on another one the point may be a local minimizer.
"""

METHOD = """
The problems are those of `tests/problems` with a known optimum, from their usual starts (`hs78_penalty` is left out:
it is unbounded below). Every solver runs in a process of its own, on one core, in float64, and is stopped after
{evaluations} evaluations or {seconds:g} seconds. To repeat it, with an environment for each peer:

    python benchmarks/solver_quality.py --pygranso-python PATH --ncopt-python PATH

- **nonsmooth**: default options, 10,000 iterations.
- **PyGRANSO**: default options (μ0 = 1, opt_tol 1e-8), 10,000 iterations. **PyGRANSO tight**: the same with opt_tol
  1e-14, so that it does not stop before it reaches the accuracy required here.
- **ncOPT**: default options, 10,000 iterations, its assertions switched off because they would end some runs early,
  float64 instead of its default float32, and smooth problems declared smooth, so that it need not sample. A problem
  without constraints gets one that always holds, because ncOPT requires one. One seed.
- **SLSQP** of scipy: exact gradients, ftol 1e-12, smooth problems only, which is what it is made for.

## What to keep in mind

- An evaluation is one point at which f and all constraints are computed. Gradients are not counted: PyGRANSO computes
  all of them at every point, nonsmooth only where it needs them. ncOPT evaluates f and each group of constraints at
  different sampled points; the group that it evaluates most often is counted, which favors ncOPT.
- The optimum of a nonconvex problem is the published one. A solver that ends in another local minimum is not at
  fault, but does not count as having solved the problem.
- Each problem has one start, so luck plays a part: on a single problem small differences mean little. The profile is
  over all of them.
- PyGRANSO is not deterministic: four runs of `hs49` ended with gaps of 1e-3 and 1e-6, and with solutions
  after 2030 and 3257 evaluations. The page shows one run of each of its two settings.
- How far a run gets before the time limit depends on the machine.
- These problems were also used to develop nonsmooth, not the others.
- Time is not compared here: with problems this small, it is nearly all overhead.

## Problem by problem

Evaluations until solved, the fewest in bold; otherwise f − f* of the best feasible point (or the smallest violation),
and the status of the run.
"""


def page(samples: dict[str, Any]) -> str:
    """The text of docs/explanation/solver-quality.md."""
    results, problems = samples["results"], Problems(samples["problems"])
    versions = [
        (
            TITLES[solver],
            ", ".join(f"{name} {version}" for name, version in samples["versions"].get(solver, {}).items()),
            "{date}, {commit}".format(**samples["measured"][solver]),
        )
        for solver in results
    ]
    lines = [INTRODUCTION]
    for title, group in groups(samples):
        lines += [f"## {title}", "", summary(group), ""]
    lines += [CLAIMED.strip(), "", "## How it was measured", "", table(["solver", "versions", "date, commit"], versions)]
    lines += [METHOD.format(**samples["limits"]), details(results, problems), ""]
    return "\n".join(lines)
