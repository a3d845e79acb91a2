"""Null steps: add cuts from a rejected trial point to the next model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nonsmooth.evaluate import Trial
from nonsmooth.kinks.jumps import sign_changes, store_gradients
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.step.outcome import CutKind
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State


def add_cuts(state: State, model: ModelLike, step: Step, trial: Trial) -> CutKind | None:
    """Store the gradients at the end of a rejected full step if they add information to the model."""
    at = state.current
    if state.hessian_updates == 0 or trial.f - at.f > -THRESHOLDS.informative_rise * step.decrease or not trial.differentiable:
        return None  # before the first update, or far too long: a gradient there need not be relevant at x
    excess = trial.f - at.f - step.objective_change
    violation_excess = step.weight * (trial.total_violation - step.predicted_violation)
    if excess > violation_excess:
        return None if step.shares is not None else _add_objective_cut(state, step, trial)
    if violation_excess > excess and step.piece_shares is None:
        return _add_constraint_pieces(state, model, step, trial)
    return None


def _add_objective_cut(state: State, step: Step, trial: Trial) -> CutKind | None:
    at = state.current
    slope = float(trial.gradient @ step.direction)
    rise = at.f - trial.f + slope
    if not state.near_kink and rise >= THRESHOLDS.smooth_share * (slope - step.objective_change):
        return None  # f may be smooth and curved, which the line search and the quasi-Newton matrix handle
    error = max(abs(rise), THRESHOLDS.locality * float(step.direction @ step.direction))
    if slope - error < THRESHOLDS.new_slope * step.objective_change:
        return None
    state.bundle.add(trial)
    return CutKind.KINK


def _add_constraint_pieces(state: State, model: ModelLike, step: Step, trial: Trial) -> CutKind | None:
    at, equalities = state.current, state.current.equalities
    actual = np.concatenate([np.abs(trial.c[:equalities]), np.maximum(trial.c[equalities:], 0.0)])
    above = actual - model.violations(step.direction)
    if len(at.x) > THRESHOLDS.max_variables_for_equality_pieces:
        above[:equalities] = 0.0
    above[:equalities][sign_changes(at.c[:equalities], trial.c[:equalities])] = 0.0  # a change of sign is not a kink
    rising = np.nonzero((above > THRESHOLDS.violation_share * float(above.sum())) & (above > 0.0))[0]
    if not store_gradients(state.pieces, at, trial, rising, least_change=THRESHOLDS.jump):
        return None
    return CutKind.PIECE if len(state.pieces.kinked_constraints) else CutKind.KINK
