"""BFGS with the whole matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.hessian.update import Curvature, Outcome

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class FullMemory:
    """The inverse Hessian as a dense n×n matrix.

    >>> from nonsmooth.hessian import curvature_pair
    >>> hessian = FullMemory(2)
    >>> hessian.update(curvature_pair(np.array([1.0, 0.0]), np.array([4.0, 0.0]), None, 0.0)).name
    'SCALED'
    >>> hessian.apply(np.array([4.0, 0.0]))
    array([1., 0.])
    """

    def __init__(self, size: int, initial: Matrix | None = None, *, scale: bool = True, gamma: float = 1.0) -> None:
        self._size, self._gamma = size, gamma
        self._initial = None if initial is None else np.array(initial, dtype=np.float64)
        self._scale = scale
        self.reset()

    def reset(self) -> None:
        """Go back to γ times the identity; an initial matrix is used only once."""
        self.matrix: Matrix = self._gamma * np.eye(self._size) if self._initial is None else self._initial
        self._initial = None
        self.updates = 0

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        return self.matrix @ columns

    def update(self, pair: Curvature) -> Outcome:
        """Learn from one step; the matrix stays as it was if the result would not be usable."""
        if not pair.product > 0:
            return Outcome.NOT_POSITIVE
        outcome = Outcome.UPDATED
        scale = 1.0
        if self._scale and self.updates == 0:
            factor = pair.product / float(pair.y @ pair.y)
            if np.isfinite(factor) and factor > 0:
                scale, outcome = factor / self._gamma, Outcome.SCALED
        product = scale * (self.matrix @ pair.y)
        inverse = 1.0 / pair.product
        coefficient = inverse * inverse * max(float(pair.y @ product), 0.0) + inverse
        # H + u sᵀ + s uᵀ with u = (coefficient/2) s − inverse·Hy: symmetric in floating point too.
        u = 0.5 * coefficient * pair.s - inverse * product
        if not (np.isfinite(u).all() and np.isfinite(pair.s).all() and np.isfinite(coefficient)):
            return Outcome.NOT_FINITE
        change = np.outer(u, pair.s)
        if scale != 1.0:
            self.matrix *= scale
        self.matrix += change + change.T
        self.updates += 1
        return outcome

    def regularized(self, threshold: float, *, lower_large: bool) -> FullMemory:
        """A copy whose condition number is at most the threshold; itself where it is already."""
        values, vectors = np.linalg.eigh(self.matrix)
        largest, smallest = float(values[-1]), float(values[0])
        if smallest > 0 and largest <= threshold * smallest:
            return self
        if lower_large and smallest > 0:
            values = np.minimum(values, threshold * smallest)
        else:
            values = np.maximum(values, largest / threshold)
        return FullMemory(self._size, (vectors * values) @ vectors.T)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        return {"matrix": self.matrix, "updates": self.updates}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self.matrix, self.updates = np.array(arrays["matrix"]), int(arrays["updates"])
