"""Where a full step ends: exactly on the kinks that it goes to, where these say that variables are 0 or equal.

A step that the model holds on a kink ends there up to rounding errors: what should be 0 is 1e-17. Where the kink is that of a
variable, or of the difference of two, the point itself is put right: zeros are zeros, and a constant piece has one value.
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

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
_NONE = np.zeros(0, dtype=np.intp)
_NO_PAIRS = np.zeros((0, 2), dtype=np.intp)
REACHED = 1e-9
"""How far from a kink, beside the variables, a step may end that is held on it."""


def landing_point(at: Trial, step: Step, units: Vector | None) -> Vector:
    """The end of a full step; `units` are those of the variables, None where they are the user's."""
    x: Vector = at.x + step.direction
    reading = at.reading if step.sees_kinks else None
    # Without compiled code most programs are solved to eleven digits, and a point that is put right would be moved.
    if reading is None or not (reading.terms.round.any() or load() is not None):
        return x
    scale = np.ones(len(x)) if units is None else units
    zeros: list[Indices] = []
    pairs: list[NDArray[np.intp]] = []
    for terms, shares in ((reading.terms, step.shares), _of_constraints(at, step)):
        if terms is not None and shares is not None and len(terms) and len(shares) == sum(terms.shape):
            zero, pair = _simple(terms, shares, at.x, x, scale)
            zeros.append(zero)
            pairs.append(pair)
    if not any(map(len, zeros)) and not any(map(len, pairs)):
        return x
    return _put_right(x, np.concatenate(zeros), np.concatenate(pairs), scale)


def _of_constraints(at: Trial, step: Step) -> tuple[Terms | None, Vector | None]:
    """The terms of constraints, and between which slopes the first constraint with a multiplier puts each."""
    reading = None if at.reading is None else at.reading.constraints
    if reading is None or step.piece_shares is None or step.piece_shares.shape[1] != reading.places:
        return None, None
    carrying = np.nonzero(step.multipliers > 0.0)[0]
    shares = np.full(reading.places, np.nan)
    for index in carrying[::-1].tolist():
        involved = reading.terms.places[reading.sensitivities[index] != 0.0]
        shares[involved] = step.piece_shares[index, involved] / step.multipliers[index]
    return reading.terms, shares


def _simple(terms: Terms, shares: Vector, before: Vector, x: Vector, units: Vector) -> tuple[Indices, Indices]:
    """The variables that are 0 on the kinks on which a step is held, and the pairs of variables that are equal."""
    known = shares[terms.places]
    held = np.nonzero(terms.held(known) & (terms.groups == ALONE))[0]
    used = terms.rows[held] != 0.0
    counts = np.count_nonzero(used, axis=1)
    few = counts <= 2
    if not few.any():
        return _NONE, _NO_PAIRS
    held, used, counts = held[few], used[few], counts[few]
    rows = terms.rows[held]
    parts = np.abs(rows) @ np.abs(before)
    # The kink is where the row is 0, without a constant, and the step leads there.
    homogeneous = np.abs(rows @ before - terms.values[held]) <= ROUNDING * (parts + np.abs(terms.values[held]))
    size = max(float(np.abs(before).max()), float(np.abs(x).max()))
    reached = np.abs(rows @ x) <= REACHED * size * np.abs(rows).sum(axis=1)
    fitting = homogeneous & reached
    zero = used[fitting & (counts == 1)].argmax(axis=1)
    pairs = np.nonzero(used[fitting & (counts == 2)])[1].reshape(-1, 2)
    slopes = np.take_along_axis(rows[fitting & (counts == 2)], pairs, axis=1) / units[pairs]
    return zero, pairs[slopes[:, 0] == -slopes[:, 1]]


def _put_right(x: Vector, zero: Indices, pairs: Indices, units: Vector) -> Vector:
    """The point with these variables at 0, and with equal values, in the units of the user, of those that are connected."""
    first = np.arange(len(x))
    while True:  # each variable learns of the first that it is connected with
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
