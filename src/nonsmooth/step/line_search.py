"""A weak-Wolfe line search by bisection and doubling; it does not require smoothness."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.norm import norm
from nonsmooth.evaluate import Trial
from nonsmooth.options import Options
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]


class Ending(Enum):
    """How a line search ended."""

    ACCEPTED = "a point satisfies both weak Wolfe conditions"
    BRACKETED = "the interval became too small, or the evaluations ran out, before both conditions were satisfied"
    NEVER_BRACKETED = "the penalty function decreased at every trial point, however far away"


class _WolfeTest(Enum):
    """The result of the weak Wolfe conditions at a trial point."""

    TOO_FAR = "the decrease is insufficient"
    WITHOUT_GRADIENT = "the gradient is not finite, so no step can start here"
    NOT_FAR_ENOUGH = "the curvature condition fails"
    GOOD = "both weak Wolfe conditions hold"


class SearchResult(NamedTuple):
    """The result of a line search."""

    ending: Ending
    trial: Trial | None
    """The accepted point; otherwise the last trial point."""
    step: float
    evaluations: int


def search(
    evaluate: Callable[[Vector], Trial],
    start: Trial,
    direction: Vector,
    slope: float,
    weight: float,
    options: Options,
    *,
    step_tolerance: float,
    first: Trial | None = None,
    limit: int | None = None,
    longest: float = np.inf,
) -> SearchResult:
    """Search along a direction with negative slope; `first` is the trial point at the initial step, if known.

    A point is too far if the penalty function does not decrease by at least
    sufficient_decrease · t · |slope| (or is not finite), and not
    far enough if its slope is still below curvature · slope. The first kind bounds the interval from above, the second from
    below. Steps are at most `longest`.
    """
    length = norm(direction)
    if not 0 < length < np.inf:
        return SearchResult(Ending.BRACKETED, None, 0.0, 0)
    shortest = step_tolerance * max(norm(start.x), THRESHOLDS.least_magnitude) / length
    lowest, highest = 0.0, np.inf
    step, evaluations, expansions = options.initial_step, 0, 0
    max_expansions = max(THRESHOLDS.min_expansions, round(np.log2(THRESHOLDS.search_reach / length)))
    limit = options.max_search_evaluations if limit is None else min(limit, options.max_search_evaluations)
    trial: Trial | None = None
    lower_trial: tuple[Trial, float] | None = None
    while highest - lowest > shortest and evaluations < limit:
        if trial is not None and (lower_trial is None or trial is not lower_trial[0]):
            trial.release()  # only the last trial point, or the last with a decrease, is returned
        trial = first if first is not None and evaluations == 0 else evaluate(start.x + step * direction)
        evaluations += 1
        outcome = _test(start, trial, step, direction, slope, weight, options)
        if outcome is _WolfeTest.GOOD:
            return SearchResult(Ending.ACCEPTED, trial, step, evaluations)
        if outcome is _WolfeTest.NOT_FAR_ENOUGH:
            lowest, lower_trial = step, (trial, step)
        else:
            highest = step
        if highest < np.inf:
            step = 0.5 * (lowest + highest)
            continue
        if expansions >= THRESHOLDS.runaway_expansions and _leaves_constraints(start, trial):
            return SearchResult(Ending.NEVER_BRACKETED, trial, step, evaluations)
        if lowest >= longest or expansions >= max_expansions:
            break
        step, expansions = min(2.0 * lowest, longest), expansions + 1
    if lower_trial is not None and (highest < np.inf or lowest >= longest):  # sufficient decrease alone is still progress
        return SearchResult(Ending.ACCEPTED, *lower_trial, evaluations)
    unbracketed = highest == np.inf and trial is not None
    return SearchResult(Ending.NEVER_BRACKETED if unbracketed else Ending.BRACKETED, trial, step, evaluations)


def _test(
    start: Trial, trial: Trial, step: float, direction: Vector, slope: float, weight: float, options: Options
) -> _WolfeTest:
    if not trial.penalty(weight) < start.penalty(weight) + options.sufficient_decrease * step * slope:
        return _WolfeTest.TOO_FAR
    if options.backtracking_only:
        return _WolfeTest.GOOD
    rate = float(trial.penalty_gradient(weight) @ direction)
    if not math.isfinite(rate):
        return _WolfeTest.WITHOUT_GRADIENT
    return _WolfeTest.NOT_FAR_ENOUGH if rate <= options.curvature * slope else _WolfeTest.GOOD


def _leaves_constraints(start: Trial, trial: Trial) -> bool:
    """Whether the penalty function decreases only because the objective decreases faster than the violation grows."""
    return trial.total_violation > THRESHOLDS.runaway_violation * start.total_violation + 1.0
