"""A weak-Wolfe line search by bisection and doubling, which needs no smoothness."""

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

    ACCEPTED = "a point with enough decrease and enough change of slope was found"
    BRACKETED = "the interval became too small, or the evaluations ran out, before such a point was found"
    NEVER_BRACKETED = "the penalty function fell at every trial point, however far"


class _Verdict(Enum):
    """What is said of a trial point."""

    TOO_FAR = "the penalty function has not fallen enough"
    WITHOUT_GRADIENT = "nothing can start from there"
    NOT_FAR_ENOUGH = "the slope has not changed enough"
    GOOD = "both weak Wolfe conditions hold"


class Search(NamedTuple):
    """What a line search found."""

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
) -> Search:
    """Search along a direction whose slope is negative; `first` is the trial point at the initial step, if known.

    A point is too far if the penalty did not fall by sufficient_decrease · t · slope (or is not finite), not far enough
    if its slope is still below curvature · slope. The first kind bounds the interval from above, the second from below.
    Steps are at most `longest`.
    """
    length = norm(direction)
    if not 0 < length < np.inf:
        return Search(Ending.BRACKETED, None, 0.0, 0)
    shortest = step_tolerance * max(norm(start.x), THRESHOLDS.least_magnitude) / length
    lowest, highest = 0.0, np.inf
    step, evaluations, expansions = options.initial_step, 0, 0
    most_expansions = max(THRESHOLDS.min_expansions, round(np.log2(THRESHOLDS.search_reach / length)))
    limit = options.max_search_evaluations if limit is None else min(limit, options.max_search_evaluations)
    trial: Trial | None = None
    fallen: tuple[Trial, float] | None = None
    while highest - lowest > shortest and evaluations < limit:
        if trial is not None and (fallen is None or trial is not fallen[0]):
            trial.release()  # only the last one is handed out, or one at which the function fell
        trial = first if first is not None and evaluations == 0 else evaluate(start.x + step * direction)
        evaluations += 1
        verdict = _judge(start, trial, step, direction, slope, weight, options)
        if verdict is _Verdict.GOOD:
            return Search(Ending.ACCEPTED, trial, step, evaluations)
        if verdict is _Verdict.NOT_FAR_ENOUGH:
            lowest, fallen = step, (trial, step)
        else:
            highest = step
        if highest < np.inf:
            step = 0.5 * (lowest + highest)
            continue
        if expansions >= THRESHOLDS.runaway_expansions and _leaves_constraints(start, trial):
            return Search(Ending.NEVER_BRACKETED, trial, step, evaluations)
        if lowest >= longest or expansions >= most_expansions:
            break
        step, expansions = min(2.0 * lowest, longest), expansions + 1
    if fallen is not None and (highest < np.inf or lowest >= longest):  # enough decrease alone is still progress
        return Search(Ending.ACCEPTED, *fallen, evaluations)
    never = highest == np.inf and trial is not None
    return Search(Ending.NEVER_BRACKETED if never else Ending.BRACKETED, trial, step, evaluations)


def _judge(
    start: Trial, trial: Trial, step: float, direction: Vector, slope: float, weight: float, options: Options
) -> _Verdict:
    if not trial.penalty(weight) < start.penalty(weight) + options.sufficient_decrease * step * slope:
        return _Verdict.TOO_FAR
    if options.backtracking_only:
        return _Verdict.GOOD
    rate = float(trial.penalty_gradient(weight) @ direction)
    if not math.isfinite(rate):
        return _Verdict.WITHOUT_GRADIENT
    return _Verdict.NOT_FAR_ENOUGH if rate <= options.curvature * slope else _Verdict.GOOD


def _leaves_constraints(start: Trial, trial: Trial) -> bool:
    """Whether the penalty function falls because the violation grows less than the objective falls."""
    return trial.total_violation > THRESHOLDS.runaway_violation * start.total_violation + 1.0
