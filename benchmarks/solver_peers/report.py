"""Data profiles, their picture, and the page that explains them, all from the stored results."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Results = dict[str, dict[str, dict[str, Any]]]
"""solver -> problem -> what the recorder kept"""

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
"""How each solver says that it has converged."""


class Problems:
    """What the report needs to know of the problems."""

    def __init__(self, cases: dict[str, Any]) -> None:
        self.size = {name: case.n for name, case in cases.items()}
        self.constraints = {name: f"{case.inequalities}/{case.equalities}" for name, case in cases.items()}
        self.smooth = [name for name, case in cases.items() if case.smooth]
        self.nonsmooth = [name for name, case in cases.items() if not case.smooth]
        self.convex = [name for name, case in cases.items() if case.convex]
        self.names = list(cases)


def budgets(results: dict[str, dict[str, Any]], names: Iterable[str], sizes: dict[str, int] | None) -> list[float]:
    """The budgets at which problems were solved, ascending: evaluations, or evaluations / (n + 1) with sizes."""
    hits = ((name, results.get(name, {}).get("hit")) for name in names)
    return sorted(hit / (sizes[name] + 1 if sizes else 1) for name, hit in hits if hit is not None)


def draw(results: Results, problems: Problems, path: Path) -> None:
    """Two rows of data profiles: all problems with the solvers for nonsmooth ones, smooth problems with SLSQP too."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.hashsalt": "solver-quality", "svg.fonttype": "none"}
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def summary(results: Results, problems: Problems, names: Sequence[str], solvers: Sequence[str]) -> list[str]:
    rows = []
    common = [name for name in names if all(results[s].get(name, {}).get("hit") is not None for s in solvers)]
    for solver in solvers:
        own = results[solver]
        solved = budgets(own, names, problems.size)
        limits = [f"{sum(b <= limit for b in solved)}" for limit in (10, 30, 100, 300)]
        middle = f"{statistics.median(own[name]['hit'] for name in common):g}" if common else "–"
        wrong = [
            name for name in names if own.get(name, {}).get("hit") is None and own.get(name, {}).get("status") in CLAIMS[solver]
        ]
        convex = sum(name in problems.convex for name in wrong)
        rows.append((TITLES[solver], len(names), f"**{len(solved)}**", *limits, middle, f"{len(wrong)}, {convex}"))
    headings = ("solver", "problems", "solved", "≤ 10 (n+1)", "≤ 30 (n+1)", "≤ 100 (n+1)", "≤ 300 (n+1)")
    median = f"median evaluations, {len(common)} solved by all"
    return table((*headings, median, "said converged, not solved: all, convex"), rows)


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


def details(results: Results, problems: Problems) -> list[str]:
    rows = []
    for name in problems.names:
        found = [results[solver].get(name) for solver in results]
        best = min((one["hit"] for one in found if one and one["hit"] is not None), default=None)
        rows.append((f"`{name}`", problems.size[name], problems.constraints[name], *(cell(one, best) for one in found)))
    return table(("problem", "n", "ci/ce", *(TITLES[solver] for solver in results)), rows)


INTRODUCTION = """\
# How many evaluations it takes: solvers side by side

<!-- Written by benchmarks/solver_quality.py; do not edit. -->

![Data profiles: fraction of problems solved against the budget in evaluations](../images/solver-quality.svg)

A data profile shows, for every budget, the fraction of problems a solver has solved within it. The budget on the
left is in evaluations divided by n + 1, so that small and large problems can stand in one curve; on the right it is
in plain evaluations. Higher is better, and further left is better. The legend has the number of problems solved.

A problem is solved at the first point **evaluated** with violation ≤ 1e-6 and f ≤ f* + 1e-6·max(1, |f*|), whether
the solver knew it or not. The function itself counts: the same few lines wrap it in every process, so no solver's
own statistics are believed.
"""

CLAIMED = """
The last column counts runs in which the solver ended by itself and reported convergence without ever having
evaluated a solution. On a convex problem that report is wrong at this accuracy; on others it may be a local minimizer.
"""

METHOD = """
The problems are those of `tests/problems` with a known optimum, from their usual starts (`hs78_penalty` is left out:
it is unbounded below). Every solver runs in a process of its own, on one core, in float64, and is stopped after
{evaluations} evaluations or {seconds:g} seconds. To make it again, with an environment for each peer:

    python benchmarks/solver_quality.py --pygranso-python PATH --ncopt-python PATH

- **nonsmooth**: default options, 10,000 iterations.
- **PyGRANSO**: default options (μ0 = 1, opt_tol 1e-8), 10,000 iterations. **PyGRANSO tight**: the same with opt_tol
  1e-14, so that it does not stop by itself before it has reached the accuracy asked for here.
- **ncOPT**: default options, 10,000 iterations, its assertions switched off because they would end some runs early,
  float64 instead of its default float32, and smooth problems declared smooth, which spares it sampling. A problem
  without constraints gets one that always holds, because it cannot do without. One seed.
- **SLSQP** of scipy: exact gradients, ftol 1e-12, smooth problems only, which is what it is made for.

## What to keep in mind

- An evaluation is one point where f and all constraints are computed. Gradients are not counted: PyGRANSO computes
  all of them at every point, nonsmooth only where it needs them. ncOPT asks for f and each group of constraints at
  different sampled points; the group it asks for most often is counted, which is the kindest way.
- The optimum of a nonconvex problem is the published one. A solver that ends in another local minimum has done
  nothing wrong, and counts as not having solved the problem.
- Start and problem are given, so a solver can be lucky: on a single problem small differences mean little. The
  profile is over all of them.
- PyGRANSO does not repeat itself exactly: four runs of `hs49` ended with gaps of 1e-3 and 1e-6, and with solutions
  after 2030 and 3257 evaluations. One run is shown here of each of its two settings.
- A run that met the time limit might have gone on; how far it came depends on the machine.
- These problems were also used to develop nonsmooth, not the others.
- Time is not compared here. Problems this small are all overhead.

## Problem by problem

Evaluations until solved, fewest in bold; otherwise f − f* of the best feasible point (or the smallest violation),
and how the run ended.
"""


def page(stored: dict[str, Any], results: Results, problems: Problems) -> str:
    """The text of docs/explanation/solver-quality.md."""
    versions = [
        (TITLES[solver], ", ".join(f"{name} {version}" for name, version in stored["versions"].get(solver, {}).items()))
        for solver in results
    ]
    others = [solver for solver in results if solver != "slsqp"]
    groups = (("All", problems.names, others), ("The", problems.nonsmooth, others), ("The", problems.smooth, list(results)))
    kinds = ("problems", "nonsmooth ones", "smooth ones")
    lines = [INTRODUCTION]
    for (article, names, solvers), kind in zip(groups, kinds, strict=True):
        lines += [f"## {article} {len(names)} {kind}", "", *summary(results, problems, names, solvers), ""]
    lines += [CLAIMED.strip(), "", "## How it was made", "", *table(("solver", "versions"), versions)]
    lines += [METHOD.format(**stored["limits"]), *details(results, problems), ""]
    return "\n".join(lines)
