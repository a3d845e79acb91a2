"""What a quadratic program needs of an inverse Hessian H and the rows G of its gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Form(Protocol):
    """The matrix G·H·Gᵀ, and H times combinations of the rows of G. It holds until H is updated."""

    @property
    def matrix(self) -> Matrix:
        """G·H·Gᵀ, symmetric."""

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself where it is known."""


class DenseForm:
    """The form from H·Gᵀ."""

    def __init__(self, rows: Matrix, scaled: Matrix) -> None:
        self._scaled = scaled
        matrix = rows @ scaled
        self.matrix = 0.5 * (matrix + matrix.T)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on."""
        return self._scaled[:, first:] @ weights
