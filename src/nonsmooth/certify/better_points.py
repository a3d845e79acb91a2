"""Points near one that looks stationary that deny it, because they are better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.combination import Combination
from nonsmooth.evaluate import FunctionFailed, Trial
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
PEAK, PEAK_ROUNDING = 1e-3, 1e-12
"""From a peak f falls with a slope of at least so many times the longest gradient, and by more than rounding changes it."""
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""How far from a kink a point may be, by the numbers of which the distance is made, that is on it."""


def onto_kinks(evaluate: Callable[[Vector], Trial], at: Trial, near: float) -> Trial | None:
    """A better point on the kinks of f that can be seen `near` x; None where x is on them already, or it is no better.

    What is near by the size of the variables may be far by f, where this is steep.
    """
    reading = at.reading
    if reading is None or reading.hidden or not len(reading.terms):
        return None
    terms = reading.terms
    with np.errstate(over="ignore", invalid="ignore"):
        beside = terms.near(near) & (terms.right > terms.left)
        rounding = ROUNDING * (np.abs(terms.rows) @ np.abs(at.x) + np.abs(terms.values))
        if not (np.abs(terms.values) > rounding)[beside].any():
            return None
        rows, values = terms.rows[beside], terms.values[beside]
    lengths = np.linalg.norm(rows, axis=1)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return None
    try:
        step = -np.linalg.lstsq(rows / lengths[:, None], values / lengths, rcond=1e-10)[0]
        trial = evaluate(at.x + step)
    except (FunctionFailed, np.linalg.LinAlgError):
        return None
    least = THRESHOLDS.similar * abs(at.f)
    feasible = trial.total_violation <= at.total_violation
    return trial if trial.finite and feasible and trial.f < at.f - least and trial.differentiable else None


def fall_from_a_peak(
    evaluate: Callable[[Vector], Trial], at: Trial, combination: Combination, gathered: list[Trial]
) -> Trial | None:
    """A far better point among those beside x, looked for where parts of f are only said to be smooth.

    A run that follows kinks lies on them. If others lie there that bend f downwards, gradients cancel on top of them too.
    """
    reading = at.reading
    if reading is None or not reading.assumptions:
        return None
    opposite = [evaluate(2.0 * at.x - trial.x) for trial in gathered[:1]]
    for trial in (*gathered, *opposite):
        least = PEAK * combination.longest * float(np.linalg.norm(trial.x - at.x)) + PEAK_ROUNDING * (1.0 + abs(at.f))
        if trial.finite and trial.total_violation <= at.total_violation and trial.f < at.f - least:
            gained = at.f - trial.f + float(combination.multipliers @ (at.c - trial.c))  # beyond what constraints cost
            if gained > least:
                return trial
    return None
