"""The termination tests at every iterate."""

from __future__ import annotations

import numpy as np

from nonsmooth.arrays.norm import norm
from nonsmooth.evaluate import Trial
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.loop.state import COLUMNS, State
from nonsmooth.loop.stationarity import StationarityCheck
from nonsmooth.options import Options, Tolerances
from nonsmooth.result import Status
from nonsmooth.step.model import Step
from nonsmooth.thresholds import THRESHOLDS

_STATIONARITY = COLUMNS.index("stationarity")


def stationarity_measure(at: Trial, step: Step) -> float:
    """The solver's own measure: the larger of the aggregate gradient's length and its linearization error, both relative."""
    return max(norm(step.gradient) / (1.0 + norm(at.gradient)), step.error / (1.0 + abs(at.f)))


class Termination:
    """Decides when to run the independent check, which is expensive, and whether the run ends."""

    def __init__(self, check: StationarityCheck, incumbents: Incumbents, options: Options, tolerances: Tolerances) -> None:
        self._check, self._incumbents, self._options, self._tolerances = check, incumbents, options, tolerances

    def test(self, state: State, step: Step, change: float) -> Status | None:
        """The status that ends the run at the current point, from which `step` starts, after a relative `change`."""
        if not self._incumbents.feasible(state.current):
            return None
        if self._due(state, step, change):
            verdict = self._check.check(state)
            if verdict.certificate.stationary:
                return Status.STATIONARY
            if verdict.better is not None and norm(verdict.better.x - state.current.x) > verdict.certificate.radius:
                state.better = verdict.better
            state.last_check_iteration, state.last_check_stationarity = state.iteration, state.stationarity
            state.iterations_at_tolerance = 0
        if change <= self._options.relative_decrease_tolerance and self._options.relative_decrease_tolerance > 0:
            self._check.check(state, final=True)
            return Status.RELATIVE_DECREASE
        return None

    def predicts_more_decrease(self, at: Trial, step: Step) -> bool:
        """Whether the model predicts a significant decrease, however steep the functions were at the start."""
        tolerance = self._tolerances.stationarity
        return bool(-step.decrease > THRESHOLDS.decrease_multiple * tolerance * (tolerance + abs(at.f)))

    def _due(self, state: State, step: Step, change: float) -> bool:
        """Whether to run the independent check.

        One digit beyond the tolerance usually costs only an iteration or two; the tolerance itself suffices only if that digit
        is not reached. A stalled objective indicates convergence only if the measure has stalled too.
        """
        at, measure, tolerance = state.current, state.stationarity, self._tolerances.stationarity
        complementarity = float(np.abs(step.multipliers) @ np.abs(at.c)) / (1.0 + abs(at.f)) if len(at.c) else 0.0
        decrease = -step.decrease / (1.0 + abs(at.f))
        reached = max(measure, complementarity, THRESHOLDS.decrease_multiple * decrease)
        patience = THRESHOLDS.patience
        earlier = state.history[-1 - patience][_STATIONARITY] if len(state.history) > patience else 0.0
        stalled = change <= THRESHOLDS.stalled_change and measure > 0.5 * earlier
        reached = np.inf if self.predicts_more_decrease(at, step) else reached
        state.iterations_at_tolerance += reached <= tolerance or stalled
        if reached > THRESHOLDS.spare_digit * tolerance and state.iterations_at_tolerance <= patience:
            return False
        last = state.last_check_iteration
        shorter = measure <= THRESHOLDS.spare_digit * state.last_check_stationarity
        return last < 0 or state.iteration >= last + THRESHOLDS.iterations_between_checks or shorter
