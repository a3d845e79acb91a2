"""BFGS with the last few pairs, in compact form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.hessian.update import Curvature, Outcome

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class LimitedMemory:
    """The inverse Hessian as γI plus a correction of rank twice the number of pairs kept.

    With S and Y the pairs as columns, R the upper triangle of SᵀY and D its diagonal,

        H = γI + [S  γY] [ R⁻ᵀ(D + γYᵀY)R⁻¹   −R⁻ᵀ ] [ Sᵀ  ]
                         [ −R⁻¹                0    ] [ γYᵀ ]

    >>> from nonsmooth.hessian import curvature_pair
    >>> hessian = LimitedMemory(2, pairs=3)
    >>> hessian.update(curvature_pair(np.array([1.0, 0.0]), np.array([4.0, 0.0]), None, 0.0)).name
    'SCALED'
    >>> hessian.apply(np.array([4.0, 0.0]))
    array([1., 0.])
    """

    def __init__(self, size: int, *, pairs: int, scale: bool = True, fixed_scaling: bool = False, gamma: float = 1.0) -> None:
        self._size, self.pairs, self._scale, self._fixed, self._initial = size, pairs, scale, fixed_scaling, gamma
        self.reset()

    def reset(self) -> None:
        """Forget all pairs."""
        self.steps: Matrix = np.zeros((0, self._size))
        self.changes: Matrix = np.zeros((0, self._size))
        self.gamma = self._initial
        self.updates = 0
        self._middle: Matrix | None = None

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        if len(self.steps) == 0:
            return self.gamma * columns
        if self._middle is None:
            self._middle = self._compact()
        projections = np.concatenate([self.steps @ columns, self.gamma * (self.changes @ columns)])
        weights = self._middle @ projections
        half = len(self.steps)
        result: NDArray[np.float64] = self.gamma * columns + self.steps.T @ weights[:half]
        result += self.gamma * (self.changes.T @ weights[half:])
        return result

    def _compact(self) -> Matrix:
        products = self.steps @ self.changes.T
        upper = np.triu(products)
        inverse = np.linalg.solve(upper, np.eye(len(upper)))
        inner = np.diag(np.diag(products)) + self.gamma * (self.changes @ self.changes.T)
        return np.block([[inverse.T @ inner @ inverse, -inverse.T], [-inverse, np.zeros_like(upper)]])

    def update(self, pair: Curvature) -> Outcome:
        """Keep one more pair; the oldest goes when there are too many."""
        if not pair.product > 0:
            return Outcome.NOT_POSITIVE
        if not (np.isfinite(pair.s).all() and np.isfinite(pair.y).all()):
            return Outcome.NOT_FINITE
        outcome = Outcome.UPDATED
        if self._scale and (self.updates == 0 or not self._fixed):
            factor = pair.product / float(pair.y @ pair.y)
            if np.isfinite(factor) and factor > 0:
                self.gamma, outcome = factor, Outcome.SCALED
        start = 1 if len(self.steps) == self.pairs else 0
        self.steps = np.concatenate([self.steps[start:], pair.s[None]])
        self.changes = np.concatenate([self.changes[start:], pair.y[None]])
        self.updates += 1
        self._middle = None
        return outcome

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        return {"steps": self.steps, "changes": self.changes, "gamma": self.gamma, "updates": self.updates}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave; pairs beyond the memory are dropped, oldest first."""
        self.steps = np.array(arrays["steps"], dtype=np.float64)[-self.pairs :]
        self.changes = np.array(arrays["changes"], dtype=np.float64)[-self.pairs :]
        self.gamma, self.updates = float(arrays["gamma"]), int(arrays["updates"])
        self._middle = None
