"""What a quadratic program needs of an inverse Hessian H and the rows G of its gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.product import Product

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FORMED = 400
"""The matrix of up to so many gradients is formed, and of more if there are not more than twice as many as variables."""


class Form(Protocol):
    """The matrix G·H·Gᵀ, and H times combinations of the rows of G. It holds until H is updated."""

    @property
    def matrix(self) -> Matrix | Product:
        """G·H·Gᵀ, symmetric."""

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself where it is known."""


class DenseForm:
    """The form from H·Gᵀ."""

    def __init__(self, rows: Matrix, scaled: Matrix) -> None:
        self._scaled = scaled
        # With many more gradients than variables it is better left as a product.
        self.matrix: Matrix | Product
        if len(rows) > max(FORMED, 2 * len(scaled)):
            self.matrix = Product(rows, np.ascontiguousarray(scaled.T))
        else:
            matrix = rows @ scaled
            self.matrix = 0.5 * (matrix + matrix.T)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on."""
        return self._scaled[:, first:] @ weights
