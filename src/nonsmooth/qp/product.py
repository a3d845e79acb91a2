"""The matrix of a program, in a form that suits its size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Product:
    """A symmetric matrix left·rightᵀ that is not formed, for where it has many more rows than its factors columns.

    >>> product = Product(np.array([[1.0], [2.0]]), np.array([[3.0], [6.0]]))
    >>> product @ np.ones(2)
    array([ 9., 18.])
    >>> product.dense()
    array([[ 3.,  6.],
           [ 6., 12.]])
    """

    left: Matrix
    right: Matrix

    def __len__(self) -> int:
        return len(self.left)

    def __matmul__(self, y: Vector) -> Vector:
        product: Vector = self.left @ (y @ self.right)
        return product

    @cached_property
    def diagonal(self) -> Vector:
        """The entries of the diagonal."""
        diagonal: Vector = np.einsum("ij,ij->i", self.left, self.right)
        return diagonal

    def dense(self) -> Matrix:
        """The matrix itself."""
        matrix = self.left @ self.right.T
        return 0.5 * (matrix + matrix.T)

    def part(self, rows: Indices) -> Product:
        """The matrix of some rows and the same columns."""
        return Product(self.left[rows], self.right[rows])
