"""Kinks of constraints: which gradients to store, and whether a step crossed a kink.

A constraint may be a maximum of several functions, or a norm. At one point only one gradient is available; the gradients of
the other pieces that meet there come from other points and are stored as separate rows. An equality that is never negative,
not even by rounding, may be a norm that must vanish: it has more pieces than can be stored, so its gradients are not stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.kinks.pieces import ConstraintPieces
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]


def sign_changes(before: Vector, after: Vector) -> Flags:
    """Which values changed sign; a value close to 0 has no sign.

    >>> sign_changes(np.array([1.0, -1.0, -1e-9]), np.array([2.0, 1.0, 1.0]))
    array([False,  True, False])
    """
    flags: Flags = (before * after <= 0) & (np.abs(before) > THRESHOLDS.similar * np.abs(after))
    return flags


def store_gradients(
    pieces: ConstraintPieces, at: Trial, trial: Trial, indices: object, *, least_change: float | None = None
) -> bool:
    """Store the gradients of constraints at a trial point that differ enough from those at x; whether there are any."""
    pieces.notice(at)
    pieces.notice(trial)
    chosen = np.asarray(indices, dtype=np.intp)
    values, own, inequality = trial.c[chosen], at.c[chosen], chosen >= at.equalities
    small = len(at.x) <= THRESHOLDS.max_variables_for_equality_pieces
    near = np.where(inequality, values > -THRESHOLDS.similar, small & ~sign_changes(own, values))
    chosen = chosen[near]
    if not len(chosen):
        return False
    has_kinks = np.isin(chosen, pieces.kinked_constraints)
    differ = _differ(
        at, trial, chosen, np.where(has_kinks, THRESHOLDS.distinct_piece, least_change or THRESHOLDS.distinct_piece)
    )
    chosen, has_kinks = chosen[differ], has_kinks[differ]
    kinks = has_kinks | (~_smooth_changes(at, trial, chosen) & ~np.isin(chosen, pieces.never_negative))
    for index, kinked in zip(chosen.tolist(), kinks.tolist(), strict=True):
        pieces.add(trial, index, kinked=kinked)
    return len(chosen) > 0


def gradient_jumped(pieces: ConstraintPieces, multipliers: Vector, before: Trial, after: Trial) -> bool:
    """Whether the gradient of a constraint with a known kink and a nonzero multiplier jumped."""
    chosen = pieces.kinked_constraints
    chosen = chosen[multipliers[chosen] != 0]
    return bool(_differ(after, before, chosen, np.full(len(chosen), THRESHOLDS.jump)).any())


def _differ(at: Trial, trial: Trial, chosen: Indices, limits: Vector) -> Flags:
    here, there = at.jacobian[chosen], trial.jacobian[chosen]
    flags: Flags = np.linalg.norm(there - here, axis=1) > limits * np.linalg.norm(here, axis=1)
    return flags


def _smooth_changes(at: Trial, trial: Trial, chosen: Indices) -> Flags:
    """Which constraints may have changed their gradients between two points as smooth functions do.

    A quadratic has the same linearization error at both points. Near a kink the linearization of the other piece is exact at
    x, or the step leads along the kink.
    """
    here, there, step = at.jacobian[chosen], trial.jacobian[chosen], trial.x - at.x
    rise = trial.c[chosen] - at.c[chosen]
    own, other = rise - here @ step, there @ step - rise
    both = own + other
    balanced = np.minimum(own * np.sign(both), other * np.sign(both)) >= THRESHOLDS.smooth_share * np.abs(both)
    most = np.linalg.norm(there - here, axis=1) * np.linalg.norm(step)
    flags: Flags = balanced & (np.abs(both) >= THRESHOLDS.turning_share * most)
    return flags
