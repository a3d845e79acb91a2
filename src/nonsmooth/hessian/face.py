"""The inverse Hessian on a face of the box, where some variables are fixed and the others minimize the same quadratic model.

With B = H⁻¹ the free variables F have the inverse Hessian (B_FF)⁻¹, which is the Schur complement
H_FF − H_FA·H_AA⁻¹·H_AF for the fixed variables A. Only products with H and systems with H_AA are needed, never B itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.quadratic_form import DenseForm
from nonsmooth.hessian.update import InverseHessian

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]


class Face:
    """The quadratic model restricted to steps that change the fixed variables by given amounts.

    >>> from nonsmooth.hessian import FullMemory
    >>> face = Face(FullMemory(2, np.array([[2.0, 1.0], [1.0, 2.0]])), np.array([0]), np.array([4.0]))
    >>> face.displacement
    array([4., 2.])
    >>> face.apply(np.array([7.0, 2.0]))
    array([0., 3.])
    """

    def __init__(self, hessian: InverseHessian, fixed: Indices, changes: Vector) -> None:
        self._hessian, self._fixed, self._changes = hessian, fixed, changes
        self._solve: Callable[[Vector], Vector] = hessian.principal_solver(fixed) if len(fixed) else lambda vector: vector
        self.displacement = self._spread(changes)
        """The step with these changes that minimizes the quadratic term over the free variables."""

    def _spread(self, changes: Vector) -> Vector:
        if not len(self._fixed) or not changes.any():
            return np.zeros(self._hessian.size)
        step = self._hessian.apply(self._embedded(self._solve(changes)))
        step[self._fixed] = changes
        return step

    def _embedded(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.zeros((self._hessian.size, *part.shape[1:]))
        whole[self._fixed] = part
        return whole

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse Hessian of the free variables times a vector or columns; 0 for the fixed ones."""
        product = self._hessian.apply(columns)
        if len(self._fixed):
            product = product - self._hessian.apply(self._embedded(self._solve(product[self._fixed])))
            product[self._fixed] = 0.0
        return product

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> DenseForm:
        """The quadratic form over rows of gradients."""
        gradients = rows.dense() if isinstance(rows, Rows) else rows
        return DenseForm(gradients, self.apply(gradients.T))

    def metric(self) -> None:
        """None: compiled code does not support faces."""

    def multipliers(self, gradient: Vector) -> Vector:
        """The derivative of the model with respect to each fixed variable, after the step for a combined gradient."""
        if not len(self._fixed):
            return np.zeros(0)
        return self._solve(self._changes + self._hessian.apply(gradient)[self._fixed])
