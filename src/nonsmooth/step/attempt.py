"""One attempt at a step: the full step, its second-order correction, null steps, the line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.norm import norm
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.kinks.bundle import own_cut
from nonsmooth.kinks.jumps import store_gradients
from nonsmooth.options import Options, Tolerances
from nonsmooth.step.correction import Correction, correct, correct_shorter
from nonsmooth.step.landing import landing_point
from nonsmooth.step.line_search import Ending, SearchResult, search
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.step.null_steps import add_cuts
from nonsmooth.step.outcome import AcceptedStep, CutKind, StepFailure
from nonsmooth.step.proposal import Proposer
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]


@dataclass
class _Attempt:
    """The model and step to try, and what happened so far at this point."""

    model: ModelLike
    step: Step
    null_steps: int = 0
    retries: int = 0
    met_kink: bool = False


class Stepper:
    """Tries model steps and turns them into accepted steps."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        proposer: Proposer,
        options: Options,
        tolerances: Tolerances,
        box: Box | None = None,
        units: Vector | None = None,
    ) -> None:
        self._evaluate, self._proposer, self._options, self._tolerances = evaluate, proposer, options, tolerances
        self._box, self._units = box, units
        self.ray: Step | None = None
        """The step along which f decreases without bound; not always the first step of its iteration."""

    def advance(self, state: State, model: ModelLike, step: Step) -> AcceptedStep | StepFailure:
        """Try the model's step; return the accepted step or the reason for the failure."""
        options, at, attempt = self._options, state.current, _Attempt(model, step)
        while True:
            step = attempt.step
            value = at.penalty(step.weight)
            if not step.decrease < -self._tolerances.noise * max(THRESHOLDS.least_magnitude, abs(value)):
                return self._judge_by_gradients(state, step, value) or StepFailure.NO_DECREASE
            direction = step.direction * (1.0 / norm(step.direction)) if options.normalize_direction else step.direction
            kinks_may_be_hidden = step.shares is None or (len(at.c) > 0 and step.piece_shares is None)
            may_add_cuts = attempt.null_steps < options.max_null_steps and kinks_may_be_hidden
            end = landing_point(at, step, self._units) if step.has_visible_kinks else at.x + options.initial_step * direction
            full_trial = self._evaluate(end)
            fraction = THRESHOLDS.serious_decrease if may_add_cuts else options.sufficient_decrease
            limit = value + fraction * options.initial_step * step.decrease
            if not full_trial.penalty(step.weight) < limit and full_trial.finite:
                accepted = self._judge_by_gradients(state, step, value, full_trial)
                corrected = None if accepted else self._correct_step(state, step, full_trial, value)
                if corrected is not None and corrected.low_enough:
                    accepted = self._accepted_step(step, corrected.trial, 1.0, attempt)
                if accepted is not None:
                    return accepted
                if may_add_cuts and self._null_step(state, attempt, add_cuts(state, attempt.model, step, full_trial)):
                    continue
                shorter = (
                    None if corrected is None else correct_shorter(self._evaluate, at, step, value, options.sufficient_decrease)
                )
                if shorter is not None:
                    return self._accepted_step(step, *shorter, attempt)
            result = search(
                self._evaluate, at, direction, step.decrease, step.weight, options,
                step_tolerance=self._tolerances.step, first=full_trial, longest=self.longest_step(at, direction),
            )  # fmt: skip
            outcome = self._after_search(state, attempt, result, may_add_cuts=may_add_cuts)
            if outcome is not None:
                return outcome

    def _after_search(
        self, state: State, attempt: _Attempt, result: SearchResult, *, may_add_cuts: bool
    ) -> AcceptedStep | StepFailure | None:
        """Decide what follows a line search; None means try again, with another weight or after a null step."""
        at, trial = state.current, result.trial
        if result.ending is Ending.ACCEPTED and trial is not None:
            if not trial.differentiable:
                return StepFailure.SEARCH_FAILED
            return self._accepted_step(attempt.step, trial, result.step, attempt)
        if result.ending is Ending.NEVER_BRACKETED and trial is not None:
            if len(at.c) == 0 or trial.violation <= max(at.violation, self._tolerances.inequality):
                self.ray = attempt.step
                return StepFailure.UNBOUNDED
            limit = self._options.first_penalty_retries if state.iteration == 0 else self._options.penalty_retries
            if attempt.retries >= limit or attempt.step.weight >= THRESHOLDS.max_weight:
                return StepFailure.SEARCH_FAILED
            attempt.retries += 1
            attempt.step = self._proposer.retry(state, attempt.model, attempt.step)
            return None
        if not may_add_cuts or trial is None or not trial.finite or not trial.differentiable:
            return StepFailure.SEARCH_FAILED
        # Even the nearest trial points are worse: they lie beyond a kink, and their gradients belong to its other side.
        stored = attempt.step.piece_shares is None and store_gradients(state.pieces, at, trial, range(len(at.c)))
        if attempt.step.shares is not None and not stored:
            return StepFailure.SEARCH_FAILED
        state.bundle.add(trial)
        self._null_step(state, attempt, CutKind.KINK)
        return None

    def _null_step(self, state: State, attempt: _Attempt, kind: CutKind | None) -> bool:
        """Propose a new step from the same point with the cuts just added; False if there are none."""
        if kind is None:
            return False
        attempt.null_steps += 1
        attempt.met_kink = attempt.met_kink or kind is CutKind.KINK
        use_bundle = attempt.met_kink or state.near_kink
        attempt.model, attempt.step = self._proposer.propose(state, attempt.step.weight, use_bundle=use_bundle)
        return True

    def _correct_step(self, state: State, step: Step, full_trial: Trial, value: float) -> Correction | None:
        """The second-order correction of the full step."""
        if self._options.initial_step != 1.0 or self._options.normalize_direction:
            return None
        uses_pieces = step.uses_pieces or state.pieces.carry(step.row_multipliers[len(state.current.c) :])
        limit = value + self._options.sufficient_decrease * step.decrease
        return correct(self._evaluate, state.current, step, full_trial, limit, uses_pieces=uses_pieces)

    def _accepted_step(self, step: Step, trial: Trial, length: float, attempt: _Attempt | None = None) -> AcceptedStep:
        if self._options.normalize_direction:
            length *= 1.0 / norm(step.direction)
        hessian_step = -length * step.gradient if step.curvature_known else None
        null_steps, met_kink = (0, False) if attempt is None else (attempt.null_steps, attempt.met_kink)
        return AcceptedStep(trial, step, length, hessian_step, null_steps=null_steps, met_kink=met_kink)

    def _judge_by_gradients(self, state: State, step: Step, value: float, trial: Trial | None = None) -> AcceptedStep | None:
        """Judge the full step by gradients when its predicted decrease is below the rounding error of the values.

        Near a solution values change with the square of the distance to it, so values alone determine only half of the
        digits of x.
        """
        at, tolerances, options = state.current, self._tolerances, self._options
        rounding = THRESHOLDS.rounding_multiple * tolerances.noise * max(1.0, abs(value))
        relative_violation = max(at.inequality_violation / tolerances.inequality, at.equality_violation / tolerances.equality)
        if (
            abs(step.decrease) > rounding
            or relative_violation > 1
            or (step.at_kink and step.shares is None)
            or options.initial_step != 1.0
        ):
            return None
        if state.idle_gradient_steps >= THRESHOLDS.max_idle_steps or options.normalize_direction:
            return None
        if state.history and state.stationarity <= THRESHOLDS.spare_digit * tolerances.stationarity:
            return None  # already well within the tolerance
        trial = self._evaluate(landing_point(at, step, self._units)) if trial is None else trial
        if not trial.penalty(step.weight) <= value + rounding:
            corrected = correct(self._evaluate, at, step, trial, value + rounding, uses_pieces=False)
            if corrected is None or not corrected.low_enough:
                return None
            trial = corrected.trial
        if not trial.differentiable:
            return None
        before, after = norm(step.gradient), norm(self._combined_gradient(state, step, trial))
        shortest = min(before, state.shortest_gradient)
        if after <= THRESHOLDS.gradient_progress * shortest:
            state.idle_gradient_steps, state.shortest_gradient = 0, after
        else:
            state.idle_gradient_steps, state.shortest_gradient = state.idle_gradient_steps + 1, shortest
        return self._accepted_step(step, trial, 1.0) if after <= 2.0 * before else None

    def _combined_gradient(self, state: State, step: Step, trial: Trial) -> Vector:
        """The gradient of the Lagrangian at a trial point, with the multipliers of the step."""
        if step.piece_shares is None and len(step.row_multipliers) > len(
            state.current.c
        ):  # the sum that should vanish combines the gradients of several pieces
            pieces = state.pieces.at(trial)
            trial_model = self._proposer.model(trial, own_cut(trial), pieces, self._proposer.metric(state), step.multipliers)
            return trial_model.step(step.weight).gradient
        objective = trial.gradient if step.shares is None else trial.gradient_with(step.shares)
        gradient: Vector = objective + trial.constraint_gradient(step.multipliers, step.piece_shares)
        return gradient if self._box is None else self._box.projected_gradient(trial.x, gradient)

    def take_ray(self) -> Step | None:
        """Return and clear the step along which f decreases without bound, if there is one."""
        ray, self.ray = self.ray, None  # do not keep its vectors of size n alive
        return ray

    def longest_step(self, at: Trial, direction: Vector) -> float:
        """The longest step that stays in the box; a full step does, up to rounding."""
        return math.inf if self._box is None else max(1.0, self._box.longest_step(at.x, direction))
