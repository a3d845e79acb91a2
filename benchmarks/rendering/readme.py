"""What README quotes of the results: five figures, and the table of solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import stored_results
from stored_results import Document

from rendering.compile_tables import mean_mode_ratio, overhead_records
from rendering.sections import records_of
from rendering.solver_quality import readme_table
from rendering.solver_speed import published_means
from rendering.solver_tables import composite_ratios
from rendering.tables import geometric_mean, spread, table


@dataclass(frozen=True)
class Figure:
    """One row of README's table."""

    what: str
    result: str
    measured: Callable[[Document], str]


def _recording(document: Document) -> str:
    recorded = next(one for one in records_of(document, overhead_records) if one["way"] == "recorded")
    return spread(recorded["wall_ratio"], 4)


def _tuning(document: Document) -> str:
    mean, count = mean_mode_ratio(records_of(document), document["name"].removeprefix("tune_"))
    return f"{mean:.2f}×, geometric mean of {count} workloads"


def _beside_pygranso(document: Document) -> str:
    means = published_means(document["samples"])
    (whole, lowest, smallest, count), (both, other_lowest, other_smallest, _) = means["ratio"], means["ratio_evaluated"]
    return (
        f"{whole:.1f}×, geometric mean of {count} problems, smallest {smallest:.2f}× ({lowest}); {both:.1f}×, smallest "
        f"{other_smallest:.2f}× ({other_lowest}), if PyGRANSO too is timed only until that quality"
    )


def _kinks(document: Document) -> str:
    ratios = composite_ratios(document["samples"])
    return f"{geometric_mean(ratios):.3f}, geometric mean of {len(ratios)} problems, largest {max(ratios):.2f}"


FIGURES = (
    Figure("Compile time with recording ÷ without: GPT-2 of two layers, forward and backward", "recorder_overhead", _recording),
    Figure(
        "Speedup of `tune` over the best mode of `torch.compile`: calls under 200 µs on a CPU (measured with an "
        "earlier version of the guard)",
        "tune_cpu",
        _tuning,
    ),
    Figure("The same: calls under 300 µs on an H200", "tune_cuda", _tuning),
    Figure(
        "Speedup of nonsmooth over PyGRANSO, timed until nonsmooth reaches PyGRANSO's final quality",
        "solver_speed_published",
        _beside_pygranso,
    ),
    Figure("Evaluations with kinks read from the program ÷ without", "composite_problems", _kinks),
)


def figure_table() -> str:
    """The five figures."""
    rows = []
    for figure in FIGURES:
        document = stored_results.load(figure.result)
        rows.append([figure.what, figure.measured(document), f"`{document['command'].removeprefix('python ')}`"])
    return table(["What", "Measured", "Command"], rows)


def blocks() -> dict[str, str]:
    """The blocks of README by their names."""
    quality = readme_table(stored_results.load("solver_quality")["samples"])
    return {
        "figures": figure_table(),
        "solvers": quality,
    }
