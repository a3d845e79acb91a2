"""A point that may become the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate.trial import Trial

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A point without gradients: x, f, all constraints, and how many of them are equalities."""

    x: Vector
    f: float
    c: Vector
    equalities: int

    @classmethod
    def of(cls, trial: Trial) -> Candidate:
        """The values of a trial point."""
        return cls(trial.x, trial.f, trial.c, trial.equalities)

    @property
    def inequality_violation(self) -> float:
        """The largest value of an inequality, at least 0."""
        return float(np.maximum(self.c[self.equalities :], 0.0).max(initial=0.0))

    @property
    def equality_violation(self) -> float:
        """The largest absolute value of an equality."""
        return float(np.abs(self.c[: self.equalities]).max(initial=0.0))
