"""Points around x that the independent check looks at: beside it, nearer and nearer to it, and along a direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.combination import Combination
from nonsmooth.evaluate import Trial
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]


def neighbors(evaluate: Callable[[Vector], Trial], at: Trial, radius: float) -> Iterator[Trial]:
    """A few points at random within the radius at which everything is finite."""
    generator = np.random.default_rng(0)
    for _ in range(THRESHOLDS.neighbors):
        direction = generator.standard_normal(len(at.x))
        way = radius * generator.uniform(0.1, 0.9) * direction / np.linalg.norm(direction)
        for side in (way, -way):  # x may lie at the edge of where the functions are defined
            trial = evaluate(at.x + side)
            if trial.finite and trial.differentiable:
                yield trial
                break


def find_denial(
    evaluate: Callable[[Vector], Trial], at: Trial, beside: Trial, combination: Combination, tolerances: Tolerances
) -> Trial | None:
    """A point whose gradients deny what those at x prove, although they are similar; None where none do.

    Between x and a point beside it a sum of gradients changes by curvature, and then the less the nearer that is; or it jumps.
    """
    drift, way, trial = combination.drift(beside), beside.x - at.x, beside
    for _ in range(THRESHOLDS.approaches):
        if drift <= tolerances.stationarity:
            return None
        way, before = THRESHOLDS.approach * way, drift
        closer = evaluate(at.x + way)
        if np.array_equal(closer.x, at.x) or not (closer.finite and closer.differentiable):
            return trial
        trial, drift = closer, combination.drift(closer)
        if not drift <= max(tolerances.stationarity, 3.0 * THRESHOLDS.approach * before):  # also where it is not a number
            return trial
    return None


def follow(
    evaluate: Callable[[Vector], Trial], at: Trial, direction: Vector, size: float, radius: float, weight: float
) -> tuple[Trial | None, Trial | None]:
    """A better point within the radius along a direction, or a point whose gradient denies the descent."""
    value, step, lowest, highest = at.penalty(weight), radius, 0.0, radius
    for _ in range(30):
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
            if rate >= -0.5 * size:
                return None, trial
        if highest - lowest < 1e-9 * radius:
            break
        step = 0.5 * (lowest + highest)
    return None, None
