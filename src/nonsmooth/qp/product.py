"""The matrix of a large program as an unformed product."""

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
    """A symmetric matrix left·rightᵀ that is not formed, because its factors have far fewer columns than rows.

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
        """The diagonal."""
        diagonal: Vector = np.einsum("ij,ij->i", self.left, self.right)
        return diagonal

    def dense(self) -> Matrix:
        """The matrix as an array."""
        matrix = self.left @ self.right.T
        return 0.5 * (matrix + matrix.T)

    def part(self, rows: Indices) -> Product:
        """The principal submatrix of some rows."""
        return Product(self.left[rows], self.right[rows])
