"""Kinks of constraints: which of their gradients are kept, and whether one was crossed.

A constraint may be the largest of several functions, or a norm. At a point it shows one gradient; those of the other pieces
that meet there are known from other points only, and are kept as rows of their own. An equality that is never negative, not
even by rounding, may be a norm that is to vanish: it has more pieces than can be known, and is not followed like this.
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


def crossed(before: Vector, after: Vector) -> Flags:
    """Which values changed sides; one that was next to 0 was on none.

    >>> crossed(np.array([1.0, -1.0, -1e-9]), np.array([2.0, 1.0, 1.0]))
    array([False,  True, False])
    """
    found: Flags = (before * after <= 0) & (np.abs(before) > THRESHOLDS.similar * np.abs(after))
    return found


def keep_gradients(pieces: ConstraintPieces, at: Trial, trial: Trial, indices: object, *, apart: float | None = None) -> bool:
    """Keep gradients that constraints have at a trial point where they differ by more than a part from those at x."""
    pieces.notice(at)
    pieces.notice(trial)
    chosen = np.asarray(indices, dtype=np.intp)
    values, own, inequality = trial.c[chosen], at.c[chosen], chosen >= at.equalities
    small = len(at.x) <= THRESHOLDS.max_variables_for_equality_pieces
    near = np.where(inequality, values > -THRESHOLDS.similar, small & ~crossed(own, values))
    chosen = chosen[near]
    if not len(chosen):
        return False
    known = np.isin(chosen, pieces.kinked)
    differ = _differ(at, trial, chosen, np.where(known, THRESHOLDS.distinct_piece, apart or THRESHOLDS.distinct_piece))
    chosen, known = chosen[differ], known[differ]
    kinks = known | (~_turns(at, trial, chosen) & ~np.isin(chosen, pieces.never_negative))
    for index, kinked in zip(chosen.tolist(), kinks.tolist(), strict=True):
        pieces.add(trial, index, kinked=kinked)
    return len(chosen) > 0


def jumped(pieces: ConstraintPieces, multipliers: Vector, before: Trial, after: Trial) -> bool:
    """Whether the gradient of a constraint that matters has jumped: one that has shown a kink, and has a multiplier."""
    chosen = pieces.kinked
    chosen = chosen[multipliers[chosen] != 0]
    return bool(_differ(after, before, chosen, np.full(len(chosen), THRESHOLDS.jump)).any())


def _differ(at: Trial, trial: Trial, chosen: Indices, limits: Vector) -> Flags:
    here, there = at.jacobian[chosen], trial.jacobian[chosen]
    found: Flags = np.linalg.norm(there - here, axis=1) > limits * np.linalg.norm(here, axis=1)
    return found


def _turns(at: Trial, trial: Trial, chosen: Indices) -> Flags:
    """Which of the constraints between two points may have changed their gradients as smooth functions do.

    A quadratic leaves its linearizations at both points by the same. Where x is next to a kink, that of the other piece is
    right at x, or the way leads along the kink.
    """
    here, there, way = at.jacobian[chosen], trial.jacobian[chosen], trial.x - at.x
    rise = trial.c[chosen] - at.c[chosen]
    own, other = rise - here @ way, there @ way - rise
    both = own + other
    balanced = np.minimum(own * np.sign(both), other * np.sign(both)) >= THRESHOLDS.smooth_share * np.abs(both)
    most = np.linalg.norm(there - here, axis=1) * np.linalg.norm(way)
    found: Flags = balanced & (np.abs(both) >= THRESHOLDS.turning_share * most)
    return found
