"""Acceptance of a step: the trial point becomes the current point, and the quasi-Newton matrix is updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate.box import Box
from nonsmooth.hessian import UpdateOutcome, curvature_pair, limit_growth
from nonsmooth.kinks.jumps import gradient_jumped, store_gradients
from nonsmooth.options import Options, Tolerances
from nonsmooth.step.outcome import AcceptedStep, Direction
from nonsmooth.step.proposal import Proposer
from nonsmooth.step.steering import Steering
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]


class Acceptance:
    """Updates the state with accepted steps."""

    def __init__(
        self, proposer: Proposer, steering: Steering, options: Options, tolerances: Tolerances, box: Box | None = None
    ) -> None:
        self._proposer, self._steering, self._options, self._tolerances = proposer, steering, options, tolerances
        self._box = box

    def accept(self, state: State, accepted: AcceptedStep) -> UpdateOutcome:
        """Make the trial point the current point and update the quasi-Newton matrix."""
        before, after, step = state.current, accepted.trial, accepted.step
        if accepted.met_kink:
            state.near_kink, state.smooth_iterations = True, 0
        elif state.near_kink:
            state.smooth_iterations += 1
            state.near_kink = state.smooth_iterations < THRESHOLDS.kink_memory
        own_weight = float(step.weights[0]) if accepted.direction is Direction.MODEL and step.shares is None else 0.0
        state.bundle.add(before, own_weight)
        after.share_rows(before)
        state.pieces.notice(before)
        if len(state.pieces):
            store_gradients(state.pieces, after, before, state.pieces.kinked_constraints)
        # If the objective has kinks too, a matrix that is rarely updated is worse than one updated across jumps.
        may_skip = len(state.pieces) > 0 and not step.at_kink and state.skipped_updates < THRESHOLDS.max_skipped_updates
        if may_skip and gradient_jumped(state.pieces, step.multipliers, before, after):
            outcome, state.skipped_updates = UpdateOutcome.KINKED, state.skipped_updates + 1
            state.hessian.forget_products()  # an update would do so
        else:
            outcome, state.skipped_updates = self._update(state, accepted), 0
        if state.near_kink:
            rounding = THRESHOLDS.rounding_multiple * self._tolerances.noise * max(1.0, abs(after.f))
            state.bundle.drop_refuted(after, max(THRESHOLDS.refuted_margin * abs(after.f - before.f), rounding))
        state.current = after
        self._steering.adopt(state, step)
        before.forget_reading()
        before.release()
        after.release()
        return outcome

    def _update(self, state: State, accepted: AcceptedStep) -> UpdateOutcome:
        """Update the matrix with the change of the gradient of the Lagrangian."""
        before, after, step = state.current, accepted.trial, accepted.step
        old, new = self._objective_gradients(state, accepted)
        there, here = (trial.constraint_gradient(step.multipliers, step.piece_shares) for trial in (after, before))
        change = new + there - (old + here)
        if self._box is not None and accepted.hessian_step is not None:
            # Variables that stay at a bound must not change the matrix: their slopes change with the other variables.
            at_bound = (after.x == before.x) & ((after.x == self._box.lower) | (after.x == self._box.upper))
            change = np.where(at_bound, accepted.hessian_step, change)
        pair = curvature_pair(after.x - before.x, change, accepted.hessian_step, self._options.damping)
        if state.hessian_updates:
            pair = limit_growth(pair, state.hessian.apply(pair.y), THRESHOLDS.least_curvature)
        outcome = state.hessian.update(pair)
        state.count_update(outcome, damped=pair.damped)
        return outcome

    def _objective_gradients(self, state: State, accepted: AcceptedStep) -> tuple[Vector, Vector]:
        """Gradients of the objective before and after a step that belong to the same side of each kink."""
        after, step = accepted.trial, accepted.step
        if step.shares is not None:
            return step.objective_gradient, after.gradient_with(step.shares)
        if accepted.direction is not Direction.MODEL or not step.at_kink:
            return step.objective_gradient, after.gradient
        # Near a kink the gradients jump, but the aggregate gradients of the two models do not.
        metric = self._proposer.metric(state)
        beyond = self._proposer.model(after, state.bundle.cuts(after), None, metric, step.multipliers)
        return step.objective_gradient, beyond.step(step.weight).objective_gradient
