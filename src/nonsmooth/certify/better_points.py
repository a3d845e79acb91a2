"""Better points near a point that looks stationary; they refute its stationarity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.combination import Combination
from nonsmooth.evaluate import FunctionFailed, Trial
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
MIN_PEAK_SLOPE, MIN_PEAK_HEIGHT = 1e-3, 1e-12
"""Below a peak, f falls with at least this slope relative to the longest gradient, and by more than this relative height."""
RELATIVE_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""Largest distance from a kink at which a point counts as on it, relative to the terms of which the distance is the sum."""


def find_point_on_kinks(evaluate: Callable[[Vector], Trial], at: Trial, near: float) -> Trial | None:
    """A better point on the visible kinks of f `near` x; None if x is already on them, or if that point is not better.

    A distance that is small relative to the variables may matter for f where f is steep.
    """
    reading = at.reading
    if reading is None or reading.hidden or not len(reading.terms):
        return None
    terms = reading.terms
    with np.errstate(over="ignore", invalid="ignore"):
        convex = terms.near(near) & (terms.right > terms.left)
        rounding = RELATIVE_ROUNDING * (np.abs(terms.rows) @ np.abs(at.x) + np.abs(terms.values))
        if not (np.abs(terms.values) > rounding)[convex].any():
            return None
        rows, values = terms.rows[convex], terms.values[convex]
    lengths = np.linalg.norm(rows, axis=1)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return None
    try:
        step = -np.linalg.lstsq(rows / lengths[:, None], values / lengths, rcond=1e-10)[0]
        trial = evaluate(at.x + step)
    except (FunctionFailed, np.linalg.LinAlgError):
        return None
    min_gain = THRESHOLDS.similar * abs(at.f)
    feasible = trial.total_violation <= at.total_violation
    return trial if trial.finite and feasible and trial.f < at.f - min_gain and trial.differentiable else None


def find_point_below_peak(
    evaluate: Callable[[Vector], Trial], at: Trial, combination: Combination, gathered_trials: list[Trial]
) -> Trial | None:
    """A much better point among the neighbors of x, searched for where parts of f are only assumed to be smooth.

    A run that follows kinks has iterates on them. If concave kinks pass through x too, gradients also cancel on top of these.
    """
    reading = at.reading
    if reading is None or not reading.assumptions:
        return None
    opposite = [evaluate(2.0 * at.x - trial.x) for trial in gathered_trials[:1]]
    for trial in (*gathered_trials, *opposite):
        min_gain = MIN_PEAK_SLOPE * combination.longest * float(np.linalg.norm(trial.x - at.x))
        min_gain += MIN_PEAK_HEIGHT * (1.0 + abs(at.f))
        if trial.finite and trial.total_violation <= at.total_violation and trial.f < at.f - min_gain:
            gain = at.f - trial.f + float(combination.multipliers @ (at.c - trial.c))  # net of the change in constraints
            if gain > min_gain:
                return trial
    return None
