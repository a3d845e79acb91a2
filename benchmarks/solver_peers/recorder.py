"""Counts the evaluations of a problem and notes the first that solves it: the same code for every solver."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

VIOLATION_TOLERANCE = 1e-6
OBJECTIVE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Limits:
    """When a solver is stopped from outside."""

    evaluations: int
    seconds: float
    grace: float
    """Seconds a solver may still use after it has evaluated a solution, to end by itself."""


class Recorder:
    """A problem's function that watches how it is used.

    An evaluation is one point at which f and all constraints are known. A solver that asks for them one by one, or at
    different points, says which part it asks for; the part asked for most often counts.
    """

    def __init__(self, case: Any, limits: Limits, stop: Callable[[str], None], hit: Callable[[], None]) -> None:
        self.case, self.limits = case, limits
        self._stop, self._hit = stop, hit
        self._parts: Counter[str] = Counter()
        self.started = time.perf_counter()
        self.hit_evaluations: int | None = None
        self.hit_seconds: float | None = None
        self.best = math.inf
        """Lowest value at a point that is feasible to the tolerance."""
        self.least_violation = math.inf

    @property
    def evaluations(self) -> int:
        return max(self._parts.values(), default=0)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def overdue(self) -> str | None:
        """Why the solver must be stopped now, if it must."""
        if self.hit_seconds is not None and self.seconds > self.hit_seconds + self.limits.grace:
            return "stopped after the hit"
        return "time limit" if self.seconds > self.limits.seconds else None

    def __call__(self, x: Tensor, part: str = "all") -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Evaluate the problem at x of shape (n,)."""
        if self.evaluations >= self.limits.evaluations:
            self._stop("evaluation limit")
        values = self.case.function(x)
        self._parts[part] += 1
        with torch._C.DisableTorchFunction():  # nothing of this is the function
            self._look(*values)
        return values

    def _look(self, f: Tensor, inequality: Tensor | None, equality: Tensor | None) -> None:
        violation = 0.0
        if inequality is not None and inequality.numel():
            violation = max(violation, float(inequality.detach().max()))
        if equality is not None and equality.numel():
            violation = max(violation, float(equality.detach().abs().max()))
        value = float(f.detach())
        if math.isnan(violation) or math.isnan(value):
            return
        self.least_violation = min(self.least_violation, violation)
        if violation > VIOLATION_TOLERANCE:
            return
        self.best = min(self.best, value)
        optimum = self.case.optimum
        if self.hit_evaluations is None and value <= optimum + OBJECTIVE_TOLERANCE * max(1.0, abs(optimum)):
            self.hit_evaluations, self.hit_seconds = self.evaluations, self.seconds
            self._hit()

    def summary(self, status: str) -> dict[str, Any]:
        """What is kept of a run."""
        return {
            "hit": self.hit_evaluations,
            "hit_seconds": rounded(self.hit_seconds),
            "evaluations": self.evaluations,
            "seconds": rounded(self.seconds),
            "gap": rounded(self.best - self.case.optimum),
            "violation": rounded(self.least_violation),
            "status": status,
        }


def rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
