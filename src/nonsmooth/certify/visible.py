"""The slopes at kinks that can be seen for which the gradients cancel: with them f is smooth at x, as far as is known.

At a kink that stands in the program, the generalized gradients are known exactly: every slope between those on its two sides.
Where all kinks near x bend f upwards and none lies within another, x is stationary if some choice of slopes makes the gradients
cancel. What is left to be checked is what is checked where f is smooth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.box_least_squares import box_least_squares
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.options import Tolerances
from nonsmooth.structure import Reading
from nonsmooth.structure.terms import ALONE

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
HUGE = 1e100
"""Gradients so long are not combined: products of them are too large for numbers."""
HEAVY = 1e4
"""Weight of the sums of shares, which are 1, beside the gradients."""


class Slopes(NamedTuple):
    """A choice of slopes at the kinks near a point."""

    reading: Reading
    shares: Vector
    """How far each is from the one on its left to that on its right, by places; NaN for kinks that are not near."""
    gap: float
    """How far f lies above what these slopes make of it."""
    rows: Matrix
    """The gradients of what vanishes at those that are near."""

    @property
    def kinks(self) -> int:
        """How many are near."""
        return len(self.rows)

    def applied(self, trial: Trial) -> Trial:
        """A point with these slopes at the kinks; one without a gradient where other kinks are seen there."""
        seen = trial.reading
        known = seen is not None and not seen.hidden and not seen.assumptions and seen.resembles(self.reading)
        gradient = seen.combined(self.shares) if known and seen is not None else np.full(len(trial.x), np.nan)
        return trial.with_gradient(gradient)


def choose_slopes(at: Trial, radius: float, tolerances: Tolerances, box: Box | None) -> Slopes | None:
    """The slopes that come nearest to making the gradients at x cancel; None where kinks are hidden or bend f downwards.

    A promise that there are no others is not enough: whether it was kept, gradients around x have to tell.
    """
    reading = at.reading
    if reading is None or reading.hidden or reading.assumptions or not len(reading.terms):
        return None
    terms = reading.terms
    lengths = np.linalg.norm(terms.rows, axis=1)
    near = np.abs(terms.values) <= 2.0 * radius * lengths
    bends = terms.right - terms.left
    if not near.any() or (bends[near] < 0).any() or reading.is_nested(near):
        return None
    chosen = np.nonzero(near)[0]
    active = np.nonzero(at.c >= -2.0 * radius * np.linalg.norm(at.jacobian, axis=1) - tolerances.inequality)[0]
    active = np.union1d(np.arange(at.equalities), active).astype(np.intp)
    columns = np.concatenate([bends[chosen, None] * terms.rows[chosen], at.jacobian[active]]).T
    base = reading.gradient + (terms.left - terms.taken)[chosen] @ terms.rows[chosen]
    if box is not None:
        free = (at.x - box.lower > 2.0 * radius) & (box.upper - at.x > 2.0 * radius)
        columns, base = columns[free], base[free]
    if not float(np.abs(columns).max(initial=0.0)) + float(np.abs(base).max(initial=0.0)) < HUGE:  # also where one is no number
        return None
    try:
        found, rests = _solve(columns, base, terms.groups[chosen], at.equalities, len(active))
    except np.linalg.LinAlgError:  # the numbers are too large
        return None
    if not np.isfinite(found).all():
        return None
    shares = np.full(len(terms) + len(terms.largest), np.nan)
    shares[terms.places[chosen]] = found
    for group, rest in rests.items():
        shares[terms.largest[group]] = rest
    slopes = terms.left[chosen] + found * bends[chosen]
    gap = terms.sum(np.where(near, terms.values, 0.0)) - float(slopes @ terms.values[chosen])
    return Slopes(reading, shares, gap, terms.rows[chosen])


def _solve(
    columns: Matrix, base: Vector, groups: NDArray[np.int64], equalities: int, constraints: int
) -> tuple[Vector, dict[int, float]]:
    """The shares of terms, and what they leave for the largest entries of groups."""
    count = len(groups)
    known = np.unique(groups[groups != ALONE])
    heavy = HEAVY * max(1.0, float(np.abs(columns).max(initial=0.0)), float(np.abs(base).max(initial=0.0)))
    sums = np.zeros((len(known), columns.shape[1] + len(known)))
    for row, group in enumerate(known):
        sums[row, :count][groups == group] = heavy
        sums[row, columns.shape[1] + row] = heavy
    system = np.vstack([np.hstack([columns, np.zeros((len(columns), len(known)))]), sums])
    target = np.concatenate([-base, np.full(len(known), heavy)])
    lower, upper = np.zeros(system.shape[1]), np.ones(system.shape[1])
    lower[count : count + equalities], upper[count : count + constraints] = -np.inf, np.inf
    found = box_least_squares(system, target, lower, upper)[:count]
    rests = {}
    for group in known.tolist():
        mine = groups == group
        found[mine] /= max(1.0, float(found[mine].sum()))
        rests[group] = 1.0 - float(found[mine].sum())
    return found, rests
