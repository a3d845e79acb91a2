"""Evaluation within the limits of a run: time, evaluations, target. The best evaluated points are stored."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.loop.end_of_run import EndOfRun
from nonsmooth.loop.incumbents import Incumbents
from nonsmooth.options import Options
from nonsmooth.result import Status

Vector = NDArray[np.float64]


class LimitedEvaluator:
    """Evaluates points for a run, and raises `EndOfRun` at a limit or at the target.

    `earlier_seconds` and `earlier_evaluations` belong to the runs that this run continues.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        incumbents: Incumbents,
        options: Options,
        *,
        earlier_seconds: float = 0.0,
        earlier_evaluations: int = 0,
    ) -> None:
        self._evaluator, self._incumbents, self._options = evaluator, incumbents, options
        self.earlier_seconds, self.earlier_evaluations = earlier_seconds, earlier_evaluations
        self._started = perf_counter()

    def __call__(self, x: Vector) -> Trial:
        """Evaluate a point."""
        self.stop_at_limits()
        trial = self._evaluator(x)
        trial.finite = trial.finite and isfinite(x.sum())  # values can be finite where x has overflowed
        self._incumbents.consider(trial)
        if self.reaches_target(trial):
            raise EndOfRun(Status.TARGET_REACHED, at=trial)
        return trial

    @property
    def deadline(self) -> float:
        """The end of the time limit, as a value of `time.perf_counter`."""
        return self._started + self._options.max_seconds - self.earlier_seconds

    @property
    def seconds(self) -> float:
        """Seconds used so far."""
        return self.earlier_seconds + perf_counter() - self._started

    @property
    def evaluations(self) -> int:
        """Number of points evaluated so far."""
        return self.earlier_evaluations + self._evaluator.costs.values

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self._options.max_seconds < np.inf and self.seconds > self._options.max_seconds

    def stop_at_limits(self) -> None:
        """Raise `EndOfRun` if a limit is reached."""
        if self.out_of_time:
            raise EndOfRun(Status.TIME_LIMIT)
        if self.evaluations >= self._options.max_evaluations:
            raise EndOfRun(Status.EVALUATION_LIMIT)

    def reaches_target(self, trial: Trial) -> bool:
        """Whether a point is feasible and reaches the target value."""
        target = self._options.target_value
        if target == -np.inf or not self._incumbents.feasible(trial):
            return False
        return self._evaluator.unscaled(trial.f, trial.c)[0] <= target

    def through(self, other: Evaluator) -> Callable[[Vector], Trial]:
        """Evaluation by another evaluator within the same limits, without storing its points."""

        def evaluate(x: Vector) -> Trial:
            self.stop_at_limits()
            return other(x)

        return evaluate
