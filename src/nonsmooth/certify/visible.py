"""The slopes at kinks that can be seen for which the gradients cancel: with them f is smooth at x, as far as is known.

At a kink that stands in the program, the generalized gradients are known exactly: every slope between those on its two sides.
Where all kinks near x bend f, or a constraint that holds, upwards, and none lies within another, x is stationary if some choice
of slopes and multipliers makes the gradients cancel. What is left to be checked is what is checked where functions are smooth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.ball_program import BallProgram, solve_ball_program
from nonsmooth.arrays.interior_point import NO_BALL
from nonsmooth.certify.box_least_squares import box_least_squares
from nonsmooth.certify.kinked_constraints import KinkedConstraints
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
"""Weight of the sums of shares, which are known, beside the gradients."""
MOST_TIES = 20
"""How often slopes beyond those on the sides of a kink of a constraint are set to the nearer of them, and all solved anew."""


class Slopes(NamedTuple):
    """A choice of slopes at the kinks near a point."""

    reading: Reading
    shares: Vector
    """How far each is from the one on its left to that on its right, by places; NaN for kinks that are not near."""
    constraint_shares: Matrix | None
    """The same for the kinks of each constraint; None where none is near."""
    gap: float
    """How far f, and the constraints times their multipliers, lie above what these slopes make of them."""
    rows: Matrix
    """How gradients change across those that are near."""
    kinks: int
    """How many are near."""

    def applied(self, trial: Trial) -> Trial:
        """A point with these slopes at the kinks; one without a gradient where other kinks are seen there."""
        seen, own = trial.reading, self.reading
        known = seen is not None and not seen.hidden and not seen.assumptions and seen.resembles(own)
        if not known or seen is None:
            return trial.with_gradients(np.full(len(trial.x), np.nan))
        gradient = seen.combined(self.shares)
        if self.constraint_shares is None or own.constraints is None:
            return trial.with_gradients(gradient)
        if seen.constraints is None or not seen.constraints.resembles(own.constraints):
            return trial.with_gradients(np.full(len(trial.x), np.nan))
        return trial.with_gradients(gradient, seen.constraints.combined(self.constraint_shares))


def choose_slopes(at: Trial, radius: float, tolerances: Tolerances, box: Box | None) -> Slopes | None:
    """The slopes that come nearest to making the gradients at x cancel; None where kinks are hidden or bend downwards.

    A promise that there are no others is not enough: whether it was kept, gradients around x have to tell.
    """
    reading = at.reading
    if reading is None or reading.hidden or reading.assumptions:
        return None
    terms = reading.terms
    near = terms.near(2.0 * radius)  # as near as the points at which gradients are gathered
    bends = terms.right - terms.left
    if (bends[near] < 0).any() or reading.is_nested(near):
        return None
    active = np.nonzero(at.c >= -2.0 * radius * np.linalg.norm(at.jacobian, axis=1) - tolerances.inequality)[0]
    active = np.union1d(np.arange(at.equalities), active).astype(np.intp)
    constraints = reading.constraints
    close = np.zeros(0, dtype=bool) if constraints is None else constraints.terms.near(2.0 * radius)
    kinked = KinkedConstraints(constraints, active, close, len(at.x))
    if not (near.any() or len(kinked)) or not kinked.convex:
        return None
    chosen = np.nonzero(near)[0]
    smooth = np.setdiff1d(active, kinked.constraints)
    # Unknown are the shares of kinks of f, the multipliers of smooth constraints, and those of kinked ones with their kinks.
    # Those of entries of balls are counted from the middle, to 1 on the sphere.
    inside = terms.in_ball[chosen]
    first = np.where(inside, 0.0, terms.left[chosen])
    widths = np.where(inside, terms.right[chosen], bends[chosen])
    columns = np.concatenate([widths[:, None] * terms.rows[chosen], at.jacobian[smooth]])
    base = reading.gradient + (first - terms.autograd_slopes[chosen]) @ terms.rows[chosen]
    try:
        equalities = int((smooth < at.equalities).sum())
        found, sums = _solve(
            columns, base, _free(at.x, box, radius), terms.groups[chosen], terms.balls[chosen], equalities, kinked
        )
    except (np.linalg.LinAlgError, OverflowError):  # the numbers are too large
        return None
    if not np.isfinite(found).all():
        return None
    shares = np.full(len(terms) + len(terms.largest), np.nan)
    shares[terms.places[chosen]] = np.where(inside, 0.5 + 0.5 * found[: len(chosen)], found[: len(chosen)])
    for group, rest in sums.items():
        shares[terms.largest[group]] = rest
    beside = _steady(reading, near)
    shares[terms.places[beside]] = 0.5 + 0.5 * terms.autograd_slopes[beside] / terms.right[beside]
    slopes = first + found[: len(chosen)] * widths
    gap = terms.sum(np.where(near, terms.values, 0.0)) - float(slopes @ terms.values[chosen])
    constraint_shares = kinked.shares(found[len(chosen) + len(smooth) :])
    if constraint_shares is not None and constraints is not None:
        multipliers = np.zeros(len(at.c))
        multipliers[kinked.constraints] = kinked.multipliers
        gap += constraints.gap(multipliers, constraint_shares)
    rows = np.concatenate([bends[chosen, None] * terms.rows[chosen], kinked.rows])
    kinks = len(rows) - int(inside.sum()) + len(np.unique(terms.balls[chosen][inside]))
    return Slopes(reading, shares, constraint_shares, gap, rows, kinks)


def _free(x: Vector, box: Box | None, radius: float) -> NDArray[np.bool_]:
    """Which variables are not near their bounds."""
    if box is None:
        return np.ones(len(x), dtype=bool)
    found: NDArray[np.bool_] = (x - box.lower > 2.0 * radius) & (box.upper - x > 2.0 * radius)
    return found


def _steady(reading: Reading, near: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Entries of norms that are not near: small ones are curved so strongly that gradients beside x would tell little.

    Slopes left as they are at x are gradients of these norms there, and as these bend f upwards, they stay below it.
    """
    terms = reading.terms
    alone = np.array([not inner for inner in reading.inner_sources], dtype=bool)
    return np.nonzero(terms.in_ball & ~near & (terms.right > 0.0) & alone[terms.sources])[0]


def _solve(
    columns: Matrix,
    base: Vector,
    free: NDArray[np.bool_],
    groups: NDArray[np.int64],
    balls: NDArray[np.int64],
    equalities: int,
    kinked: KinkedConstraints,
) -> tuple[Vector, dict[int, float]]:
    """Shares of terms of f, then multipliers; and what the shares leave for the largest entries of groups."""
    count, size = len(groups), len(columns)
    known = np.unique(groups[groups != ALONE])
    for _ in range(MOST_TIES):
        system = np.concatenate([columns, kinked.columns])[:, free].T
        target = -base[free]
        largest = float(np.abs(system).max(initial=0.0)) + float(np.abs(target).max(initial=0.0))
        if not largest < HUGE:  # also where one is no number
            raise OverflowError
        heavy = HEAVY * max(1.0, largest)
        sums = np.zeros((len(known), system.shape[1] + len(known)))
        for row, group in enumerate(known):
            sums[row, :count][groups == group] = heavy
            sums[row, system.shape[1] + row] = heavy
        whole = np.vstack([np.hstack([system, np.zeros((len(system), len(known)))]), sums])
        lower, upper = np.zeros(whole.shape[1]), np.ones(whole.shape[1])
        lower[count : count + equalities] = -np.inf
        upper[count : system.shape[1]] = np.inf
        lower[:count][balls != ALONE] = -1.0
        found = _least_squares(whole, np.concatenate([target, np.full(len(known), heavy)]), lower, upper, balls)
        found = found[: system.shape[1]]
        if not kinked.tie(found[size:]):
            break
    rests: dict[int, float] = {}
    for group in known.tolist():
        mine = np.nonzero(groups == group)[0]
        found[mine] /= max(1.0, float(found[mine].sum()))
        rests[group] = 1.0 - float(found[mine].sum())
    return found, rests


def _least_squares(matrix: Matrix, target: Vector, lower: Vector, upper: Vector, balls: NDArray[np.int64]) -> Vector:
    """The shortest remainder within bounds and balls of radius 1, which the first entries are in; or nearly so."""
    found = box_least_squares(matrix, target, lower, upper)
    inside = np.nonzero(balls != ALONE)[0]
    if not len(inside):
        return found
    members = np.full(len(found), NO_BALL)
    members[inside] = np.unique(balls[inside], return_inverse=True)[1]
    program = BallProgram(matrix.T @ matrix, -matrix.T @ target, lower, upper, members)
    if (program.lengths(found) > 1.0).any():
        found = solve_ball_program(program)
    return program.feasible(found)
