"""Exceptions of the user's functions that are treated as points outside their domain."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from nonsmooth.errors import NonsmoothError
from nonsmooth.evaluate.trial import Derivatives, FunctionFailed

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

ENDS_THE_RUN = (NonsmoothError, MemoryError, torch.OutOfMemoryError)
"""Exceptions that are not about the point: an invalid return value, or no memory left."""


@dataclass
class SkippedErrors:
    """The exceptions that were treated as points outside the domain (`on_error="skip"`)."""

    count: int = 0
    last: Exception | None = None

    def note(self, error: Exception) -> None:
        """Count an exception, or raise it again if it must end the run."""
        original = error.original if isinstance(error, FunctionFailed) else error
        if isinstance(original, ENDS_THE_RUN):
            raise error
        self.count, self.last = self.count + 1, original
        logger.info("the function raised %r; treating the point as outside its domain", original)


class NoDerivatives:
    """The derivatives at a point outside the domain: NaN."""

    def __init__(self, size: int, constraints: int) -> None:
        self._size, self._constraints = size, constraints

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """A vector of NaN."""
        return np.full(self._size, np.nan)

    def full(self) -> tuple[Vector, Matrix]:
        """Arrays of NaN."""
        return np.full(self._size, np.nan), np.full((self._constraints, self._size), np.nan)


class SkippingDerivatives:
    """Derivatives that are NaN if differentiation raises: the solver does not move to a point without gradients."""

    def __init__(self, inner: Derivatives, skipped: SkippedErrors, size: int, constraints: int) -> None:
        self._inner, self._skipped, self._none = inner, skipped, NoDerivatives(size, constraints)

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        try:
            return self._inner.combination(objective, constraints)
        except Exception as error:
            self._skipped.note(error)
            return self._none.combination(objective, constraints)

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        try:
            return self._inner.full()
        except Exception as error:
            self._skipped.note(error)
            return self._none.full()
