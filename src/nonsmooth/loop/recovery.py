"""Recovery from a failed step of the model: prove that the point is stationary, or find another step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.certificate import check_violation
from nonsmooth.evaluate import FunctionFailed, Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.state import State
from nonsmooth.loop.stationarity import StationarityCheck
from nonsmooth.options import Options, Tolerances
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.result import Status
from nonsmooth.step.fallback import Fallback, plain_step
from nonsmooth.step.model import Step
from nonsmooth.step.outcome import AcceptedStep, Direction, StepFailure
from nonsmooth.step.steering import Steering
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")


_SEARCH_DISTANCES = (1e-3, 1e-2, 1e-1, 1.0)
"""Distances, relative to max(1, |x|), at which the recovery searches for more feasible points."""
_SIGNIFICANT_DIFFERENCE = 1e-7
"""Relative difference of violations that rounding cannot explain."""
_LONG_RAY_FACTOR = 1e3
"""Factor by which an already very long ray is extended until values overflow."""
_MAX_VALUE_WITHOUT_OVERFLOW = 1e-18 * float(np.finfo(np.float64).max)
"""Beyond this absolute value of f, no point farther out can be tested without overflow."""
_FIRST_EXTENSION = 1e-5
"""The first step beyond a point that may be close to overflow, as a fraction of the distance to it."""


class Retry(Enum):
    """The state was changed: propose a step again from the same point."""

    WITH_OTHER_GRADIENTS = "gradients of earlier points were dropped or added"
    WITHOUT_VISIBLE_KINKS = "steps that use the visible kinks failed"
    WITH_LARGER_WEIGHT = "the penalty weight was raised"


RecoveryOutcome = AcceptedStep | Status | Retry


class Recovery:
    """Recovers at a point from which the model's step failed."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        fallback: Fallback,
        steering: Steering,
        stationarity: StationarityCheck,
        incumbents: Incumbents,
        tolerances: Tolerances,
        reference: Reference | None,
        options: Options,
        clock: Clock,
        box: Box | None = None,
    ) -> None:
        self._evaluate, self._fallback, self._steering, self._stationarity = evaluate, fallback, steering, stationarity
        self._incumbents, self._tolerances, self._reference, self._options = incumbents, tolerances, reference, options
        self._stationarity_phase, self._box = clock.phase(Phase.STATIONARITY), box
        self._last_checked: Trial | None = None

    def recover(self, state: State, failure: StepFailure, step: Step) -> RecoveryOutcome:
        """A status that ends the run, a step found in another way, or the change made before a retry."""
        if failure is StepFailure.NOT_TRIED:
            accepted = self._fallback.move(state)
            if accepted is not None:
                return accepted
        state.failures += 1
        if failure is StepFailure.UNBOUNDED:
            return self._follow_ray(state, step)
        if self._incumbents.feasible(state.current):
            recovery = self._recover_at_feasible_point(state, step)
        else:
            recovery = self._recover_at_infeasible_point(state, failure)
        if state.structured and not isinstance(recovery, Status):
            state.structured, state.failures = False, 0
            return recovery or Retry.WITHOUT_VISIBLE_KINKS
        if recovery is None and state.failures <= THRESHOLDS.max_failures:
            recovery = self._change_stored_gradients(state) or self._fallback.move(state)
        return recovery or self._failure_status(state.current)

    @staticmethod
    def _reset_matrix(state: State) -> None:
        """Reset the matrix after several steps in a row that only the check could find."""
        if state.failures >= THRESHOLDS.max_idle_steps:
            state.hessian.reset()
            state.hessian_updates = state.failures = 0

    def _failure_status(self, at: Trial) -> Status:
        return Status.SEARCH_FAILED_FEASIBLE if self._incumbents.feasible(at) else Status.SEARCH_FAILED_INFEASIBLE

    def _recover_at_feasible_point(self, state: State, step: Step) -> RecoveryOutcome | None:
        """Run the independent check, and use the gradients that it gathered."""
        if self._last_checked is state.current:
            return None  # the verdict would be the same
        self._last_checked = state.current
        verdict = self._stationarity.check(state)
        if verdict.certificate.stationary:
            return Status.STATIONARY
        for trial in verdict.gathered_trials:
            state.bundle.add(trial)
        if verdict.better is not None and verdict.better.differentiable:
            self._reset_matrix(state)
            return AcceptedStep(verdict.better, step, 0.0, None, null_steps=1, met_kink=True)
        return Status.SEARCH_FAILED_FEASIBLE if self._options.stop_at_failed_search else None

    def _recover_at_infeasible_point(self, state: State, failure: StepFailure) -> RecoveryOutcome | None:
        """Check whether the violation is stationary; if not, reduce it."""
        if len(state.pieces) and state.failures <= 2:
            state.pieces.clear()  # each piece has its own penalty, and their sum can be too large
            return Retry.WITH_OTHER_GRADIENTS
        at = state.current
        with self._stationarity_phase:
            verdict = check_violation(self._evaluate, at, self._tolerances, self._reference, self._box)
        if verdict.certificate.stationary:
            return self._search_nearby(state) or Status.INFEASIBLE
        search_failed = failure is StepFailure.SEARCH_FAILED or state.failures > 3
        if verdict.better is not None and search_failed:
            self._reset_matrix(state)
            return self._extend_toward_feasibility(state, verdict.better.x - at.x)
        if failure is StepFailure.NO_DECREASE and state.weight < THRESHOLDS.max_weight:
            self._steering.raise_weight(state)
            return Retry.WITH_LARGER_WEIGHT
        return None

    @staticmethod
    def _change_stored_gradients(state: State) -> Retry | None:
        """Drop the pieces of constraints, and alternate between using and ignoring the gradients of earlier points."""
        if not len(state.pieces) and not (state.near_kink and state.failures % 2):
            return None
        state.pieces.clear()
        state.near_kink = not state.near_kink
        return Retry.WITH_OTHER_GRADIENTS

    def _follow_ray(self, state: State, step: Step) -> AcceptedStep | Status:
        """The penalty function fell at every point of a line search; test whether it still falls much farther out."""
        at, last, length = state.current, state.current, 1.0
        size = max(1.0, float(np.linalg.norm(at.x)))
        far = THRESHOLDS.unbounded_distance * size / float(np.linalg.norm(step.direction))
        while np.isfinite(length):
            try:
                trial = self._evaluate(at.x + length * step.direction)
            except FunctionFailed:
                if length < far:
                    raise
                return Status.UNBOUNDED
            if not trial.finite and length >= far:
                return Status.UNBOUNDED
            falls = trial.finite and trial.penalty(step.weight) < last.penalty(step.weight)
            if not (falls and self._incumbents.feasible(trial)):
                break
            last, length = trial, length * (2.0 if length < far else _LONG_RAY_FACTOR)
        if last is at or not last.differentiable:
            return self._failure_status(at)
        return AcceptedStep(last, step, length, None, Direction.STEEPEST_DESCENT)

    def seems_unbounded(self, state: State, start: Vector, f: float) -> bool:
        """Whether f at the best feasible point, in the user's units, is far below the start and keeps falling beyond it.

        The ray from the start, or from the last points, is extended until values overflow. If it ends earlier, because f rises
        or a constraint is violated, the answer is no.
        """
        best = self._incumbents.best
        if best is None or not -f > THRESHOLDS.unbounded_fall * max(1.0, abs(state.history[0][0])):
            return False
        if -f > _MAX_VALUE_WITHOUT_OVERFLOW:
            return True
        first = _FIRST_EXTENSION
        for origin in (start, *state.bundle.arrays()["points"][-2:]):
            direction, last, length = best.x - origin, best.f, first
            while np.isfinite(length) and direction.any():
                trial = self._evaluate(best.x + length * direction)
                if not trial.finite:
                    if length > first:
                        return True
                    break
                if not (trial.f < last and self._incumbents.feasible(trial)):
                    break
                last, length = trial.f, 4.0 * length
        return False

    def _extend_toward_feasibility(self, state: State, direction: Vector) -> AcceptedStep:
        """Double a step that reduces the violation for as long as the violation falls."""
        at, length = state.current, 1.0
        best = self._evaluate(at.x + direction)
        while np.isfinite(2.0 * length):
            trial = self._evaluate(at.x + 2.0 * length * direction)
            if not (trial.finite and trial.total_violation < best.total_violation and trial.differentiable):
                break
            best, length = trial, 2.0 * length
        step = plain_step(at, direction, at.penalty_gradient(state.weight), 0.0, state.weight)
        return AcceptedStep(best, step, length, None, Direction.RANDOM)

    def _reflect_inward(self, at: Trial, direction: Vector, distance: float) -> Vector:
        """A direction, reflected where within a distance it would leave the box or violate a satisfied constraint."""
        for value, row in zip(at.c[at.equalities :], at.jacobian[at.equalities :], strict=True):
            slope, square = float(row @ direction), float(row @ row)
            if slope > 0 and -distance * square**0.5 <= value <= 0:
                direction = direction - 2.0 * slope / square * row
        if self._box is None:
            return direction
        outward = np.where(direction > 0, self._box.upper - at.x, at.x - self._box.lower) <= 0
        return np.where(outward, -direction, direction)

    def _search_nearby(self, state: State) -> AcceptedStep | None:
        """A more feasible point near one where the violation is stationary, which may be a maximum or a saddle point."""
        at = state.current
        for relative_distance in _SEARCH_DISTANCES:
            for _ in range(THRESHOLDS.infeasibility_samples):
                distance = relative_distance * max(1.0, float(np.linalg.norm(at.x)))
                direction = self._reflect_inward(at, state.generator.standard_normal(len(at.x)), distance)
                length = distance / float(np.linalg.norm(direction))
                trial = self._evaluate(at.x + length * direction)
                lower = trial.finite and trial.total_violation < (1.0 - _SIGNIFICANT_DIFFERENCE) * at.total_violation
                if lower and trial.differentiable:
                    step = plain_step(at, direction, at.penalty_gradient(state.weight), 0.0, state.weight)
                    return AcceptedStep(trial, step, length, None, Direction.RANDOM)
        return None
