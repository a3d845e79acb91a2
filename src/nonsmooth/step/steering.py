"""Steering: how the penalty weight is chosen. Nothing else writes it.

The weight ρ = 1/μ of the violation against the objective grows until the model's step predicts enough of the reduction of
violation that is possible at all (Byrd, Lopez-Calva and Nocedal 2012).
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
    """The steps of models for the weight that they need, and the weight of a run."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def step(self, state: State, model: ModelLike, weight: float) -> Step:
        """The model's step with the weight raised until enough of the violation is predicted to go."""
        step = steer(model, state.current, weight, self._options)
        own = len(state.current.c)
        needed = float(np.abs(step.multipliers).max(initial=0.0))
        carried = step.among_pieces or state.pieces.carry(step.rows[own:])
        if needed > step.weight and carried and float(np.abs(step.rows).max()) < step.weight:
            # Rows of one constraint are bounded each for itself, so that the model can do what the penalty does not pay for.
            step = model.step(min(THRESHOLDS.weight_margin * needed, THRESHOLDS.max_weight))
        return step

    def retry(self, state: State, model: ModelLike, step: Step) -> Step:
        """The step for a larger weight, after the penalty function fell without end by leaving the constraints."""
        return self.step(state, model, step.weight / self._options.penalty_retry_factor)

    def adopt(self, state: State, step: Step) -> None:
        """Use the weight of an accepted step from now on; lower it where it has long been far larger than multipliers need.

        Too large a weight makes steps short: they follow the constraints closely wherever these are curved.
        """
        state.weight = step.weight
        needed = THRESHOLDS.weight_margin * float(np.abs(step.multipliers).max(initial=0.0))
        # Multipliers may be small only here: a weight of 1, at which runs begin as a rule, is never too large.
        needed = max(needed, min(1.0, 1.0 / self._options.penalty_parameter))
        excessive = step.weight > THRESHOLDS.excessive_weight * needed
        state.excessive_iterations = state.excessive_iterations + 1 if excessive else 0
        # Each time it takes twice as long, so that the weight cannot go up and down for ever.
        if state.excessive_iterations > THRESHOLDS.max_excessive_iterations * 2**state.reductions:
            state.weight, state.excessive_iterations, state.reductions = needed, 0, state.reductions + 1

    def raise_weight(self, state: State) -> None:
        """A larger weight, where the model sees no decrease at an infeasible point."""
        state.weight /= self._options.penalty_retry_factor


def steer(model: ModelLike, at: Trial, weight: float, options: Options) -> Step:
    """The model's step, with the penalty weight raised until enough of the violation is predicted to go."""
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
    wanted = fraction * (violation - model.reference(weight)) - slack
    for _ in range(options.steering_max_reductions):
        if reduction(step) >= wanted or np.abs(step.multipliers).max() < THRESHOLDS.multiplier_at_bound * step.weight:
            break  # enough is predicted, or a larger weight would change nothing
        step = model.step(step.weight / options.steering_penalty_factor)
    return step
