"""Points that the independent check evaluates around x: random neighbors, points closer and closer to x, and a direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.combination import Combination
from nonsmooth.evaluate import Trial
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]

MAX_POINTS_ON_DIRECTION = 30
"""Maximum number of trial points along one direction."""
MIN_INTERVAL = 1e-9
"""Length of the interval at which the bisection ends, relative to the radius."""
MAX_REMAINING_SLOPE = 0.5
"""A gradient rules out a descent if the slope along the direction is at most this fraction of the predicted one."""
MAX_EXCESS_OF_LINEAR_DRIFT = 3.0
"""Factor by which the drift may exceed a drift proportional to the distance before it counts as a jump."""


def neighbors(evaluate: Callable[[Vector], Trial], at: Trial, radius: float) -> Iterator[Trial]:
    """A few random points within the radius at which values and gradients are finite."""
    generator = np.random.default_rng(0)
    for _ in range(THRESHOLDS.neighbors):
        direction = generator.standard_normal(len(at.x))
        step = radius * generator.uniform(0.1, 0.9) * direction / np.linalg.norm(direction)
        for offset in (step, -step):  # x may lie on the boundary of the domain
            trial = evaluate(at.x + offset)
            if trial.finite and trial.differentiable:
                yield trial
                break


def find_refutation(
    evaluate: Callable[[Vector], Trial], at: Trial, neighbor: Trial, combination: Combination, tolerances: Tolerances
) -> Trial | None:
    """A point whose gradients refute the proof from those at x, although they are similar; None if there is none.

    Between x and a neighbor, a sum of gradients changes either by curvature, which vanishes as the neighbor approaches x, or
    by a jump.
    """
    drift, step, trial = combination.drift(neighbor), neighbor.x - at.x, neighbor
    for _ in range(THRESHOLDS.approaches):
        if drift <= tolerances.stationarity:
            return None
        step, before = THRESHOLDS.approach * step, drift
        closer = evaluate(at.x + step)
        if np.array_equal(closer.x, at.x) or not (closer.finite and closer.differentiable):
            return trial
        trial, drift = closer, combination.drift(closer)
        if not drift <= max(
            tolerances.stationarity, MAX_EXCESS_OF_LINEAR_DRIFT * THRESHOLDS.approach * before
        ):  # also true for NaN
            return trial
    return None


def follow(
    evaluate: Callable[[Vector], Trial], at: Trial, direction: Vector, size: float, radius: float, weight: float
) -> tuple[Trial | None, Trial | None]:
    """A better point within the radius along a direction, or a point whose gradient rules out the descent."""
    value, step, lowest, highest = at.penalty(weight), radius, 0.0, radius
    for _ in range(MAX_POINTS_ON_DIRECTION):
        trial = evaluate(at.x + step * direction)
        outside = trial.total_violation > at.total_violation + THRESHOLDS.similar * radius
        if trial.finite and not outside and trial.penalty(weight) < value - THRESHOLDS.serious_decrease * step * size:
            if step == radius:
                return trial, None
            lowest = step
        else:
            highest = step
        if trial.finite and trial.differentiable:
            rate = float(trial.penalty_gradient(weight) @ direction)
            if rate >= -MAX_REMAINING_SLOPE * size:
                return None, trial
        if highest - lowest < MIN_INTERVAL * radius:
            break
        step = 0.5 * (lowest + highest)
    return None, None
