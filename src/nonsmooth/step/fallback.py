"""Fallback directions: simpler than the model's step, tried in turn when that step fails.

These are the fallbacks of BFGS-SQP (Curtis, Mitchell and Overton 2017); options choose among them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.hessian import LimitedMemory
from nonsmooth.kinks.bundle import own_cut
from nonsmooth.options import Options, Tolerances
from nonsmooth.step.attempt import Stepper
from nonsmooth.step.line_search import Ending, search
from nonsmooth.step.model import Step
from nonsmooth.step.outcome import AcceptedStep, Direction
from nonsmooth.step.proposal import Proposer
from nonsmooth.step.steering import steer
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")


class Fallback:
    """Line searches along fallback directions."""

    def __init__(
        self,
        evaluate: Callable[[Vector], Trial],
        proposer: Proposer,
        stepper: Stepper,
        options: Options,
        tolerances: Tolerances,
        box: Box | None = None,
    ) -> None:
        self._evaluate, self._proposer, self._stepper = evaluate, proposer, stepper
        self._options, self._tolerances, self._box = options, tolerances, box

    def move(self, state: State) -> AcceptedStep | None:
        """The step along the first fallback direction that leads to a better point; None if there is none."""
        for number in range(max(1, self._options.first_fallback), self._options.last_fallback + 1):
            direction = Direction(number)
            for _ in range(self._options.random_attempts if direction is Direction.RANDOM else 1):
                accepted = self._search(state, direction)
                if accepted is not None:
                    logger.info("iteration %d: fallback direction %s", state.iteration, direction.name)
                    return accepted
        return None

    def _search(self, state: State, kind: Direction) -> AcceptedStep | None:
        options, at = self._options, state.current
        gradient, step = at.penalty_gradient(state.weight), self._step(state, kind)
        if not math.isfinite(step.decrease) or (step.decrease >= 0 and options.max_nondescent_evaluations == 0):
            return None
        result = search(
            self._evaluate, at, step.direction, min(step.decrease, -np.finfo(np.float64).tiny), step.weight, options,
            step_tolerance=self._tolerances.step, limit=options.max_nondescent_evaluations if step.decrease >= 0 else None,
            longest=self._stepper.longest_step(at, step.direction),
        )  # fmt: skip
        trial = result.trial
        if trial is None or not (trial.finite and trial.differentiable):
            return None
        if result.ending is Ending.ACCEPTED:
            hessian_step = -result.step * gradient if kind is Direction.QUASI_NEWTON and self._box is None else None
            return AcceptedStep(trial, step, result.step, hessian_step, kind)
        if options.accept_failed_search and kind is Direction.STEEPEST_DESCENT:
            return AcceptedStep(trial, step, result.step, None, kind)
        return None

    def _step(self, state: State, kind: Direction) -> Step:
        at, weight = state.current, state.weight
        if kind is Direction.IDENTITY:
            with self._proposer.timer:
                model = self._proposer.model(at, own_cut(at), None, LimitedMemory(len(at.x), pairs=1))
                return steer(model, at, weight, self._options)
        gradient = at.penalty_gradient(weight)
        if kind is Direction.RANDOM:
            direction = state.generator.standard_normal(len(at.x))
            length = max(THRESHOLDS.least_magnitude, float(np.linalg.norm(at.x))) / len(at.x)
            direction *= -np.sign(gradient @ direction) * length
        else:
            direction = -state.hessian.apply(gradient) if kind is Direction.QUASI_NEWTON else -gradient
        direction = direction if self._box is None else self._box.inward(at.x, direction)
        return plain_step(at, direction, gradient, float(gradient @ direction), weight)


def plain_step(at: Trial, direction: Vector, gradient: Vector, slope: float, weight: float) -> Step:
    """A direction that does not come from a model, as a `Step`."""
    return Step(
        direction=direction, gradient=gradient, objective_gradient=at.gradient, weights=np.ones(1),
        multipliers=weight * at.signs(), row_multipliers=np.zeros(0), weight=weight,
        objective_change=float(at.gradient @ direction), predicted_violation=at.total_violation, decrease=slope, error=0.0,
        trusted=True,
    )  # fmt: skip
