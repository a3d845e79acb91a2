"""What to do when the model's step leads nowhere: prove that this is the end, or find another way on."""

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


_DISTANCES = (1e-3, 1e-2, 1e-1, 1.0)
"""Relative distances at which more feasible points are looked for."""
_CLEARLY = 1e-7
"""Relative difference of violations that rounding cannot explain."""
_LEAP = 1e3
"""By how much a ray that is very long already is prolonged until values overflow."""
_EDGE_OF_OVERFLOW = 1e-18 * float(np.finfo(np.float64).max)
"""Nothing can be asked about the other side of it."""
_FIRST_PROLONGATION = 1e-5
"""The first step behind a point that may lie near the edge of overflow, as a part of the way to it."""


class Retry(Enum):
    """The state was changed: propose again from the same point."""

    WITH_OTHER_GRADIENTS = "gradients of earlier points were dropped or taken into account"
    AS_A_BLACK_BOX = "what can be seen of the kinks led nowhere"
    WITH_LARGER_WEIGHT = "the penalty weight was raised"


Recovered = AcceptedStep | Status | Retry


class Recovery:
    """Ways out of a point from which the model's step failed."""

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
        self._testing, self._box = clock.phase(Phase.STATIONARITY), box
        self._checked: Trial | None = None

    def recover(self, state: State, failure: StepFailure, step: Step) -> Recovered:
        """A status that ends the run, a step found otherwise, or what was changed before another try."""
        if failure is StepFailure.NOT_TRIED:
            accepted = self._fallback.move(state)
            if accepted is not None:
                return accepted
        state.failures += 1
        if failure is StepFailure.UNBOUNDED:
            return self._follow_ray(state, step)
        feasible = self._incumbents.feasible(state.current)
        found = self._at_feasible(state, step) if feasible else self._at_infeasible(state, failure)
        if state.structured and not isinstance(found, Status):
            state.structured, state.failures = False, 0
            return found or Retry.AS_A_BLACK_BOX
        if found is None and state.failures <= THRESHOLDS.max_failures:
            found = self._change_gradients(state) or self._fallback.move(state)
        return found or self._failed(state.current)

    @staticmethod
    def _renew_matrix(state: State) -> None:
        """Begin anew with a matrix that has led nowhere for some steps, which the check had to find."""
        if state.failures >= THRESHOLDS.max_idle_steps:
            state.hessian.reset()
            state.hessian_updates = state.failures = 0

    def _failed(self, at: Trial) -> Status:
        return Status.SEARCH_FAILED_FEASIBLE if self._incumbents.feasible(at) else Status.SEARCH_FAILED_INFEASIBLE

    def _at_feasible(self, state: State, step: Step) -> Recovered | None:
        """Ask the independent check, and use the gradients that it gathered."""
        if self._checked is state.current:
            return None  # the answer would be the same
        self._checked = state.current
        found = self._stationarity.check(state)
        if found.certificate.stationary:
            return Status.STATIONARY
        for trial in found.gathered:
            state.bundle.add(trial)
        if found.better is not None and found.better.differentiable:
            self._renew_matrix(state)
            return AcceptedStep(found.better, step, 0.0, None, null_steps=1, met_kink=True)
        return Status.SEARCH_FAILED_FEASIBLE if self._options.stop_at_failed_search else None

    def _at_infeasible(self, state: State, failure: StepFailure) -> Recovered | None:
        """Ask whether the violation is stationary; go where it is not."""
        if len(state.pieces) and state.failures <= 2:
            state.pieces.clear()  # each of them is penalized by itself, which can be too much
            return Retry.WITH_OTHER_GRADIENTS
        at = state.current
        with self._testing:
            found = check_violation(self._evaluate, at, self._tolerances, self._reference, self._box)
        if found.certificate.stationary:
            return self._look_around(state) or Status.INFEASIBLE
        patient = failure is StepFailure.SEARCH_FAILED or state.failures > 3
        if found.better is not None and patient:
            self._renew_matrix(state)
            return self._toward_feasibility(state, found.better.x - at.x)
        if failure is StepFailure.NO_DECREASE and state.weight < THRESHOLDS.max_weight:
            self._steering.raise_weight(state)
            return Retry.WITH_LARGER_WEIGHT
        return None

    @staticmethod
    def _change_gradients(state: State) -> Retry | None:
        """Drop the pieces of constraints; use the gradients of earlier points, or do not, every other time."""
        if not len(state.pieces) and not (state.near_kink and state.failures % 2):
            return None
        state.pieces.clear()
        state.near_kink = not state.near_kink
        return Retry.WITH_OTHER_GRADIENTS

    def _follow_ray(self, state: State, step: Step) -> AcceptedStep | Status:
        """The penalty function fell at every point of a search: is there an end to it, much farther out?"""
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
            last, length = trial, length * (2.0 if length < far else _LEAP)
        if last is at or not last.differentiable:
            return self._failed(at)
        return AcceptedStep(last, step, length, None, Direction.STEEPEST_DESCENT)

    def falls_without_end(self, state: State, start: Vector, f: float) -> bool:
        """Whether f at the best feasible point, in the user's units, is far below the start, and falls on behind it.

        The way from the start, or from the last points, is prolonged until values overflow. Where it ends before, because f
        rises or a constraint is violated, nothing is claimed.
        """
        best = self._incumbents.best
        if best is None or not -f > THRESHOLDS.unbounded_fall * max(1.0, abs(state.history[0][0])):
            return False
        if -f > _EDGE_OF_OVERFLOW:
            return True
        first = _FIRST_PROLONGATION
        for origin in (start, *state.bundle.arrays()["points"][-2:]):
            way, last, length = best.x - origin, best.f, first
            while np.isfinite(length) and way.any():
                trial = self._evaluate(best.x + length * way)
                if not trial.finite:
                    if length > first:
                        return True
                    break
                if not (trial.f < last and self._incumbents.feasible(trial)):
                    break
                last, length = trial.f, 4.0 * length
        return False

    def _toward_feasibility(self, state: State, way: Vector) -> AcceptedStep:
        """Go on along a way that reduces the violation, as long as it does."""
        at, length = state.current, 1.0
        best = self._evaluate(at.x + way)
        while np.isfinite(2.0 * length):
            trial = self._evaluate(at.x + 2.0 * length * way)
            if not (trial.finite and trial.total_violation < best.total_violation and trial.differentiable):
                break
            best, length = trial, 2.0 * length
        step = plain_step(at, way, at.penalty_gradient(state.weight), 0.0, state.weight)
        return AcceptedStep(best, step, length, None, Direction.RANDOM)

    def _inward(self, at: Trial, direction: Vector, way: float) -> Vector:
        """A direction, reflected where it would soon leave the box or break a constraint that is satisfied."""
        for value, row in zip(at.c[at.equalities :], at.jacobian[at.equalities :], strict=True):
            slope, square = float(row @ direction), float(row @ row)
            if slope > 0 and -way * square**0.5 <= value <= 0:
                direction = direction - 2.0 * slope / square * row
        if self._box is None:
            return direction
        outward = np.where(direction > 0, self._box.upper - at.x, at.x - self._box.lower) <= 0
        return np.where(outward, -direction, direction)

    def _look_around(self, state: State) -> AcceptedStep | None:
        """A more feasible point not far from one where the violation is stationary: it may be a maximum or a saddle."""
        at = state.current
        for distance in _DISTANCES:
            for _ in range(THRESHOLDS.infeasibility_samples):
                way = distance * max(1.0, float(np.linalg.norm(at.x)))
                direction = self._inward(at, state.generator.standard_normal(len(at.x)), way)
                length = way / float(np.linalg.norm(direction))
                trial = self._evaluate(at.x + length * direction)
                lower = trial.finite and trial.total_violation < (1.0 - _CLEARLY) * at.total_violation
                if lower and trial.differentiable:
                    step = plain_step(at, direction, at.penalty_gradient(state.weight), 0.0, state.weight)
                    return AcceptedStep(trial, step, length, None, Direction.RANDOM)
        return None
