"""A plot of a run: objective, violation, stationarity and step sizes over the iterations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.errors import NonsmoothError

if TYPE_CHECKING:
    from nonsmooth.result import History, Result

Vector = NDArray[np.float64]

MIN_RATIO_FOR_LOG_SCALE = 100.0
"""Values are drawn on a logarithmic scale if the largest is at least this many times the smallest."""


def plot(result: Result, path: str | Path | None = None) -> Any:
    """Plot a run and return the matplotlib Figure; with a path, also write it, in the format of the suffix.

    The objective is drawn as its distance from the best feasible value if that shows more. Steps after null steps and
    fallback directions are marked below the step sizes. It opens no window and does not use pyplot.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise NonsmoothError("drawing a result needs matplotlib: pip install matplotlib") from error

    history = result.history
    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    figure.suptitle(
        f"{result.status.name}: f = {result.f:.8g}, violation {result.violation:.1e}, "
        f"{result.iterations} iterations, {result.evaluations} evaluations",
        fontsize="medium",
    )
    best = result.f if result.best is None else result.best.f
    label, values = objective(history.f, best)
    _draw(axes[0, 0], label, values)
    _draw(axes[0, 1], "violation", history.violation, nothing="no constraint is violated")
    _draw(axes[1, 0], "stationarity", history.stationarity)
    steps = np.where(np.arange(len(history)) > 0, history.step, np.nan)  # no step led to the start
    _draw(axes[1, 1], "step size", steps, nothing="no steps")
    _mark(axes[1, 1], history)
    for panel in axes[1]:
        panel.set_xlabel("iteration")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if path is not None:
        figure.savefig(path)
    return figure


def objective(f: Vector, best: float) -> tuple[str, Vector]:
    """The label and the values to draw for the objective: f, or its distance from the best value if that shows more.

    >>> objective(np.array([9.0, 5.1, 5.001, 5.0]), 5.0)[0]
    'objective − 5'
    >>> objective(np.array([5.2, 5.1, 5.0]), 5.0)[0]
    'objective'
    """
    distance = f - best
    if _spread(np.abs(distance)) < MIN_RATIO_FOR_LOG_SCALE:
        return "objective", f
    shift = f"objective {'−' if best >= 0 else '+'} {abs(best):.8g}"
    return (shift, distance) if (distance >= 0).all() else (f"|{shift}|", np.abs(distance))


def _spread(values: Vector) -> float:
    """The ratio of the largest to the smallest positive value; 1 if there are none."""
    positive = values[np.isfinite(values) & (values > 0)]
    return float(positive.max() / positive.min()) if len(positive) else 1.0


def _draw(panel: Any, label: str, values: Vector, *, nothing: str = "nothing to draw") -> None:
    """One line over the iterations, on a logarithmic scale if all values allow it and their range is wide."""
    finite = values[np.isfinite(values)]
    panel.set_title(label, fontsize="medium")
    panel.grid(visible=True, alpha=0.3)
    if not (finite != 0).any() and (not len(finite) or label == "violation"):
        panel.text(0.5, 0.5, nothing, transform=panel.transAxes, ha="center", va="center")
        panel.set_yticks([])
        return
    if (finite >= 0).all() and _spread(finite) >= MIN_RATIO_FOR_LOG_SCALE:
        values = np.where(values > 0, values, np.nan)  # a logarithmic scale cannot show zeros
        panel.set_yscale("log")
    panel.plot(np.arange(len(values)), values, marker=".", markersize=3, linewidth=1, label=label)


def _mark(panel: Any, history: History) -> None:
    """Mark iterations that needed null steps or a fallback direction, along the lower edge."""
    iterations = np.arange(len(history))
    for name, selected, symbol, height in (
        ("after null steps", history.null_steps > 0, "|", 0.03),
        ("fallback direction", history.fallback > 0, "^", 0.08),
    ):
        if selected.any():
            positions = iterations[selected]
            panel.plot(
                positions, np.full(len(positions), height), symbol, markersize=5, linestyle="none", label=name,
                transform=panel.get_xaxis_transform(),
            )  # fmt: skip
    if len(panel.get_lines()) > 1:
        panel.legend(fontsize="small")
