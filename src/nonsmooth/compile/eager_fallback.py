"""Gradients at points that compiled functions evaluated, whose guard may fail by the time the gradients are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.compile.compiled import GuardFailed
from nonsmooth.evaluate.trial import Derivatives

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator

Vector = NDArray[np.float64]


class EagerFallback:
    """Gradients from the compiled functions, or from the original functions if the guard fails."""

    def __init__(self, inner: Derivatives, evaluator: Evaluator, x: Vector) -> None:
        self._inner, self._evaluator, self._x = inner, evaluator, x

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        try:
            return self._inner.combination(objective, constraints)
        except GuardFailed:
            self._inner = self._evaluator.derivatives_at(self._x)
            return self._inner.combination(objective, constraints)

    def full(self) -> tuple[Vector, NDArray[np.float64]]:
        """Gradient of f and Jacobian of c."""
        try:
            return self._inner.full()
        except GuardFailed:
            self._inner = self._evaluator.derivatives_at(self._x)
            return self._inner.full()
