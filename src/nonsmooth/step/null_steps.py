"""Null steps: what a trial point that failed shows about kinks, and which of its gradients are kept for the next model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nonsmooth.evaluate import Trial
from nonsmooth.kinks.jumps import crossed, keep_gradients
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.step.outcome import Evidence
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State


def gather(state: State, model: ModelLike, step: Step, trial: Trial) -> Evidence | None:
    """Keep the gradients at a full step that failed, if they tell the model something new."""
    at = state.current
    if state.hessian_updates == 0 or trial.f - at.f > -THRESHOLDS.informative_rise * step.decrease or not trial.differentiable:
        return None  # before the first update, or too long by far: a gradient from there may say nothing about here
    excess = trial.f - at.f - step.objective_change
    bending = step.weight * (trial.total_violation - step.predicted_violation)
    if excess > bending:
        return None if step.shares is not None else _gather_objective(state, step, trial)
    return _gather_constraints(state, model, step, trial) if bending > excess and step.piece_shares is None else None


def _gather_objective(state: State, step: Step, trial: Trial) -> Evidence | None:
    at = state.current
    slope = float(trial.gradient @ step.direction)
    rise = at.f - trial.f + slope
    if not state.near_kink and rise >= THRESHOLDS.smooth_share * (slope - step.objective_change):
        return None  # the function may as well be smooth and curved, which a line search and the matrix deal with
    error = max(abs(rise), THRESHOLDS.locality * float(step.direction @ step.direction))
    if slope - error < THRESHOLDS.new_slope * step.objective_change:
        return None
    state.bundle.add(trial)
    return Evidence.KINK


def _gather_constraints(state: State, model: ModelLike, step: Step, trial: Trial) -> Evidence | None:
    at, equalities = state.current, state.current.equalities
    actual = np.concatenate([np.abs(trial.c[:equalities]), np.maximum(trial.c[equalities:], 0.0)])
    above = actual - model.violations(step.direction)
    if len(at.x) > THRESHOLDS.max_variables_for_equality_pieces:
        above[:equalities] = 0.0
    above[:equalities][crossed(at.c[:equalities], trial.c[:equalities])] = 0.0  # that is no kink
    rising = np.nonzero((above > THRESHOLDS.violation_share * float(above.sum())) & (above > 0.0))[0]
    if not keep_gradients(state.pieces, at, trial, rising, apart=THRESHOLDS.jump):
        return None
    return Evidence.PIECE if len(state.pieces.kinked) else Evidence.KINK
