"""Steering: the choice of the penalty weight. No other module changes the weight.

The weight ρ = 1/μ of the violation relative to the objective grows until the model's step predicts a sufficient part of the
largest possible reduction of the violation (Byrd, Lopez-Calva and Nocedal 2012).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nonsmooth.evaluate import Trial
from nonsmooth.options import Options
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.loop.state import State


class Steering:
    """Computes model steps with the weight that they need, and updates the weight of the run."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def step(self, state: State, model: ModelLike, weight: float) -> Step:
        """The model's step, with the weight raised until it predicts a sufficient reduction of the violation."""
        step = steer(model, state.current, weight, self._options)
        own = len(state.current.c)
        needed = float(np.abs(step.multipliers).max(initial=0.0))
        uses_pieces = step.uses_pieces or state.pieces.carry(step.row_multipliers[own:])
        if needed > step.weight and uses_pieces and float(np.abs(step.row_multipliers).max()) < step.weight:
            # Each row of a constraint has its own bound ρ, so that their sum may exceed it, which the penalty does not allow.
            step = model.step(min(THRESHOLDS.weight_margin * needed, THRESHOLDS.max_weight))
        return step

    def retry(self, state: State, model: ModelLike, step: Step) -> Step:
        """The step for a larger weight, after the penalty function decreased without bound by leaving the constraints."""
        return self.step(state, model, step.weight / self._options.penalty_retry_factor)

    def adopt(self, state: State, step: Step) -> None:
        """Adopt the weight of an accepted step; lower it if it has long been far larger than the multipliers require.

        Too large a weight makes steps short, because they must follow curved constraints closely.
        """
        state.weight = step.weight
        needed = THRESHOLDS.weight_margin * float(np.abs(step.multipliers).max(initial=0.0))
        # Multipliers may be small only here: a weight of 1, the default at the start, is never too large.
        needed = max(needed, min(1.0, 1.0 / self._options.penalty_parameter))
        excessive = step.weight > THRESHOLDS.excessive_weight * needed
        state.excessive_iterations = state.excessive_iterations + 1 if excessive else 0
        # Each reduction waits twice as long as the one before, so that the weight cannot oscillate forever.
        if state.excessive_iterations > THRESHOLDS.max_excessive_iterations * 2**state.reductions:
            state.weight, state.excessive_iterations, state.reductions = needed, 0, state.reductions + 1

    def raise_weight(self, state: State) -> None:
        """Raise the weight when the model predicts no decrease at an infeasible point."""
        state.weight /= self._options.penalty_retry_factor


def steer(model: ModelLike, at: Trial, weight: float, options: Options) -> Step:
    """The model's step, with the penalty weight raised until it predicts a sufficient reduction of the violation."""
    step = model.step(weight)
    if len(at.c) == 0:
        return step
    largest = options.steering_model == "max"
    violation = at.violation if largest else at.total_violation
    slack = THRESHOLDS.steering_slack * max(violation, 1.0)

    def reduction(candidate: Step) -> float:
        return violation - (model.violation(candidate.direction, largest=True) if largest else candidate.predicted_violation)

    fraction = options.steering_violation_fraction
    if reduction(step) >= fraction * violation - slack:
        return step
    margin = options.steering_inequality_margin
    if at.equalities == 0 and np.isfinite(margin) and not (at.c >= -margin).any():
        return step
    required = fraction * (violation - model.reference(weight)) - slack
    for _ in range(options.steering_max_reductions):
        if reduction(step) >= required or np.abs(step.multipliers).max() < THRESHOLDS.multiplier_at_bound * step.weight:
            break  # the reduction suffices, or a larger weight would change nothing
        step = model.step(step.weight / options.steering_penalty_factor)
    return step
