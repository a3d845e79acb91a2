"""The best points met so far, whatever became of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.candidate import Candidate
from nonsmooth.options import Tolerances

Vector = NDArray[np.float64]


class Incumbents:
    """The lowest feasible point and the most feasible one, over every point that was evaluated."""

    def __init__(self, tolerances: Tolerances) -> None:
        self._tolerances = tolerances
        self.best: Candidate | None = None
        self.most_feasible: Candidate | None = None
        self._key = (np.inf, np.inf)

    def feasible(self, trial: Trial) -> bool:
        """Whether a point satisfies all constraints to tolerance."""
        return (
            trial.finite
            and trial.inequality_violation <= self._tolerances.inequality
            and trial.equality_violation <= self._tolerances.equality
        )

    def see(self, trial: Trial) -> None:
        """Remember a point if it is better than those before."""
        if not trial.finite:
            return
        if self.feasible(trial) and (self.best is None or trial.f < self.best.f):
            self.best = Candidate.of(trial)
        if (trial.violation, trial.f) < self._key:
            self._key = (trial.violation, trial.f)
            self.most_feasible = Candidate.of(trial)

    def forget(self) -> None:
        """Know nothing any more."""
        self.best, self.most_feasible, self._key = None, None, (np.inf, np.inf)

    def restore(self, name: str, candidate: Candidate, units: Vector | None = None) -> None:
        """Take over a point from a saved state; `units` are the factors of pre-scaling."""
        setattr(self, name, candidate)
        if name == "most_feasible":
            told = candidate if units is None else replace(candidate, c=candidate.c / units)  # points are compared in these
            self._key = (max(told.inequality_violation, told.equality_violation), candidate.f)
