"""Slopes at visible kinks for which the gradients cancel: with these slopes f is smooth at x, as far as the program shows.

At a kink read from the program, the generalized gradients are known exactly: every slope between those on its two sides. If all
kinks near x, of f and of active constraints, are convex and none is within the argument of another, x is stationary if some
choice of slopes and multipliers makes the gradients cancel. The remaining checks are the same as for smooth functions.
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
MAX_GRADIENT_ENTRY = 1e100
"""Longer gradients are not combined: their products may overflow."""
SUM_WEIGHT = 1e4
"""Weight of the equations for the sums of shares, which must hold, relative to the gradients."""
MAX_TIE_ROUNDS = 20
"""How often shares of constraints that exceed their multiplier are tied to it before all is solved again."""


class Slopes(NamedTuple):
    """A choice of slopes at the kinks near a point."""

    reading: Reading
    shares: Vector
    """Position of each slope between the left one (0) and the right one (1), by places; NaN for kinks that are not near."""
    constraint_shares: Matrix | None
    """The same for the kinks of each constraint; None if none is near."""
    gap: float
    """How far f, and the constraints times their multipliers, lie above their linearizations with these slopes."""
    rows: Matrix
    """The changes of gradients across the kinks that are near."""
    kinks: int
    """The number of kinks that are near."""

    def apply_to(self, trial: Trial) -> Trial:
        """The point with these slopes at its kinks; its gradient is NaN if the program has other kinks there."""
        reading, own = trial.reading, self.reading
        usable = reading is not None and not reading.hidden and not reading.assumptions and reading.resembles(own)
        if not usable or reading is None:
            return trial.with_gradients(np.full(len(trial.x), np.nan))
        gradient = reading.gradient_with(self.shares)
        if self.constraint_shares is None or own.constraints is None:
            return trial.with_gradients(gradient)
        if reading.constraints is None or not reading.constraints.resembles(own.constraints):
            return trial.with_gradients(np.full(len(trial.x), np.nan))
        return trial.with_gradients(gradient, reading.constraints.jacobian_with(self.constraint_shares))


def choose_slopes(at: Trial, radius: float, tolerances: Tolerances, box: Box | None) -> Slopes | None:
    """The slopes for which the gradients at x come closest to canceling; None if kinks are hidden or concave.

    The user's promise that there are no other kinks is not sufficient here: it must be verified by gradients around x.
    """
    reading = at.reading
    if reading is None or reading.hidden or reading.assumptions:
        return None
    terms = reading.terms
    near = terms.near(2.0 * radius)  # within reach of the points at which gradients are sampled
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
    kinks = np.nonzero(near)[0]
    smooth = np.setdiff1d(active, kinked.constraints)
    # Unknowns: the shares of kinks of f, the multipliers of smooth constraints, and those of kinked ones with their kinks.
    # The shares of entries of balls are 0 at the center and 1 on the sphere.
    in_ball = terms.in_ball[kinks]
    first = np.where(in_ball, 0.0, terms.left[kinks])
    widths = np.where(in_ball, terms.right[kinks], bends[kinks])
    columns = np.concatenate([widths[:, None] * terms.rows[kinks], at.jacobian[smooth]])
    base = reading.gradient + (first - terms.autograd_slopes[kinks]) @ terms.rows[kinks]
    try:
        equalities = int((smooth < at.equalities).sum())
        solution, sums = _solve(
            columns, base, _free(at.x, box, radius), terms.groups[kinks], terms.balls[kinks], equalities, kinked
        )
    except (np.linalg.LinAlgError, OverflowError):  # the numbers are too large
        return None
    if not np.isfinite(solution).all():
        return None
    shares = np.full(len(terms) + len(terms.largest), np.nan)
    shares[terms.places[kinks]] = np.where(in_ball, 0.5 + 0.5 * solution[: len(kinks)], solution[: len(kinks)])
    for group, rest in sums.items():
        shares[terms.largest[group]] = rest
    distant = _distant_norms(reading, near)
    shares[terms.places[distant]] = 0.5 + 0.5 * terms.autograd_slopes[distant] / terms.right[distant]
    slopes = first + solution[: len(kinks)] * widths
    gap = terms.sum(np.where(near, terms.values, 0.0)) - float(slopes @ terms.values[kinks])
    constraint_shares = kinked.shares(solution[len(kinks) + len(smooth) :])
    if constraint_shares is not None and constraints is not None:
        multipliers = np.zeros(len(at.c))
        multipliers[kinked.constraints] = kinked.multipliers
        gap += constraints.gap(multipliers, constraint_shares)
    rows = np.concatenate([bends[kinks, None] * terms.rows[kinks], kinked.rows])
    count = len(rows) - int(in_ball.sum()) + len(np.unique(terms.balls[kinks][in_ball]))
    return Slopes(reading, shares, constraint_shares, gap, rows, count)


def _free(x: Vector, box: Box | None, radius: float) -> NDArray[np.bool_]:
    """Which variables are not near their bounds."""
    if box is None:
        return np.ones(len(x), dtype=bool)
    free: NDArray[np.bool_] = (x - box.lower > 2.0 * radius) & (box.upper - x > 2.0 * radius)
    return free


def _distant_norms(reading: Reading, near: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Entries of norms whose kink is not near. Small norms are so curved that gradients near x would say little.

    Their slopes at x are gradients of these norms there, and since the norms are convex, the linearizations are lower bounds.
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
    """Shares of terms of f, then multipliers; and the remaining shares of the largest entries of groups."""
    count, size = len(groups), len(columns)
    group_numbers = np.unique(groups[groups != ALONE])
    for _ in range(MAX_TIE_ROUNDS):
        system = np.concatenate([columns, kinked.columns])[:, free].T
        target = -base[free]
        largest = float(np.abs(system).max(initial=0.0)) + float(np.abs(target).max(initial=0.0))
        if not largest < MAX_GRADIENT_ENTRY:  # also true for NaN
            raise OverflowError
        weight = SUM_WEIGHT * max(1.0, largest)
        sums = np.zeros((len(group_numbers), system.shape[1] + len(group_numbers)))
        for row, group in enumerate(group_numbers):
            sums[row, :count][groups == group] = weight
            sums[row, system.shape[1] + row] = weight
        matrix = np.vstack([np.hstack([system, np.zeros((len(system), len(group_numbers)))]), sums])
        lower, upper = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
        lower[count : count + equalities] = -np.inf
        upper[count : system.shape[1]] = np.inf
        lower[:count][balls != ALONE] = -1.0
        right_side = np.concatenate([target, np.full(len(group_numbers), weight)])
        solution = _least_squares(matrix, right_side, lower, upper, balls)[: system.shape[1]]
        if not kinked.tie(solution[size:]):
            break
    rests: dict[int, float] = {}
    for group in group_numbers.tolist():
        members = np.nonzero(groups == group)[0]
        solution[members] /= max(1.0, float(solution[members].sum()))
        rests[group] = 1.0 - float(solution[members].sum())
    return solution, rests


def _least_squares(matrix: Matrix, target: Vector, lower: Vector, upper: Vector, balls: NDArray[np.int64]) -> Vector:
    """An approximate least-squares solution within bounds and, for the first entries, within balls of radius 1."""
    solution = box_least_squares(matrix, target, lower, upper)
    in_ball = np.nonzero(balls != ALONE)[0]
    if not len(in_ball):
        return solution
    members = np.full(len(solution), NO_BALL)
    members[in_ball] = np.unique(balls[in_ball], return_inverse=True)[1]
    program = BallProgram(matrix.T @ matrix, -matrix.T @ target, lower, upper, members)
    if (program.lengths(solution) > 1.0).any():
        solution = solve_ball_program(program)
    return program.feasible(solution)
