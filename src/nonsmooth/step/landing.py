"""Where a full step ends: exactly on kinks at which variables are 0 or equal.

A step that the model places on a kink ends there only up to rounding errors: what should be 0 is 1e-17. If the kink is that of
a variable, or of the difference of two variables, the point is snapped to it: zeros are exact, and equal variables are equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.native import load
from nonsmooth.step.model import Step
from nonsmooth.structure.terms import ALONE, Terms

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

ROUNDING_ERROR = 4.0 * float(np.finfo(np.float64).eps)
_NONE = np.zeros(0, dtype=np.intp)
_NO_PAIRS = np.zeros((0, 2), dtype=np.intp)
MAX_KINK_DISTANCE = 1e-9
"""How far from a kink, relative to the variables, a step that the model places on it may end."""


def landing_point(at: Trial, step: Step, units: Vector | None) -> Vector:
    """The end of a full step, snapped to kinks; `units` scale the variables, None if they are the user's own."""
    x: Vector = at.x + step.direction
    reading = at.reading if step.has_visible_kinks else None
    # Without compiled code most quadratic programs are solved to eleven digits only, and snapping would move the point.
    if reading is None or not (reading.terms.in_ball.any() or load() is not None):
        return x
    scale = np.ones(len(x)) if units is None else units
    zeros: list[Indices] = []
    pairs: list[NDArray[np.intp]] = []
    for terms, shares in ((reading.terms, step.shares), _constraint_terms(at, step)):
        if terms is not None and shares is not None and len(terms) and len(shares) == sum(terms.shape):
            zero, pair = _zeros_and_pairs(terms, shares, at.x, x, scale)
            zeros.append(zero)
            pairs.append(pair)
    if not any(map(len, zeros)) and not any(map(len, pairs)):
        return x
    return _snap(x, np.concatenate(zeros), np.concatenate(pairs), scale)


def _constraint_terms(at: Trial, step: Step) -> tuple[Terms | None, Vector | None]:
    """The terms of constraints, and the share that the first constraint with a multiplier gives each term."""
    reading = None if at.reading is None else at.reading.constraints
    if reading is None or step.piece_shares is None or step.piece_shares.shape[1] != reading.share_count:
        return None, None
    carrying = np.nonzero(step.multipliers > 0.0)[0]
    shares = np.full(reading.share_count, np.nan)
    for index in carrying[::-1].tolist():
        involved = reading.terms.places[reading.sensitivities[index] != 0.0]
        shares[involved] = step.piece_shares[index, involved] / step.multipliers[index]
    return reading.terms, shares


def _zeros_and_pairs(terms: Terms, shares: Vector, before: Vector, x: Vector, units: Vector) -> tuple[Indices, Indices]:
    """The variables that are 0 on the kinks on which the model places a step, and the pairs of variables that are equal."""
    on_kink = np.nonzero(terms.between_slopes(shares[terms.places]) & (terms.groups == ALONE))[0]
    used = terms.rows[on_kink] != 0.0
    counts = np.count_nonzero(used, axis=1)
    few = counts <= 2
    if not few.any():
        return _NONE, _NO_PAIRS
    on_kink, used, counts = on_kink[few], used[few], counts[few]
    rows, values = terms.rows[on_kink], terms.values[on_kink]
    magnitudes = np.abs(rows) @ np.abs(before)
    # u = row·x without a constant, so that u = 0 means that a variable is 0 or two are equal; and the step ends there.
    homogeneous = np.abs(rows @ before - values) <= ROUNDING_ERROR * (magnitudes + np.abs(values))
    size = max(float(np.abs(before).max()), float(np.abs(x).max()))
    reached = np.abs(rows @ x) <= MAX_KINK_DISTANCE * size * np.abs(rows).sum(axis=1)
    fitting = homogeneous & reached
    zero = used[fitting & (counts == 1)].argmax(axis=1)
    pairs = np.nonzero(used[fitting & (counts == 2)])[1].reshape(-1, 2)
    slopes = np.take_along_axis(rows[fitting & (counts == 2)], pairs, axis=1) / units[pairs]
    return zero, pairs[slopes[:, 0] == -slopes[:, 1]]


def _snap(x: Vector, zero: Indices, pairs: Indices, units: Vector) -> Vector:
    """The point with these variables at 0, and with equal values (in the user's units) for connected pairs."""
    first = np.arange(len(x))
    while True:  # connected components: propagate the smallest index until nothing changes
        before = first.copy()
        lowest = np.minimum(first[pairs[:, 0]], first[pairs[:, 1]])
        np.minimum.at(first, pairs[:, 0], lowest)
        np.minimum.at(first, pairs[:, 1], lowest)
        first = first[first]
        if np.array_equal(first, before):
            break
    values = (x * units)[first]
    vanishing = np.zeros(len(x), dtype=bool)
    vanishing[first[zero]] = True
    values[vanishing[first]] = 0.0
    moved = (first != np.arange(len(x))) | vanishing[first]
    return np.where(moved, values / units, x)
