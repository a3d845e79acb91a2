"""What a quadratic program needs of an inverse Hessian H and the rows G of its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.product import Product

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

FORMED = 500
"""The matrix of up to so many gradients is formed, and of more if there are not more than twice as many as variables."""
MOSTLY_ZERO = 20_000, 0.1
"""Rows with so many entries, of which at most this fraction is not 0, are multiplied without the zeros."""


def without_zeros(rows: Matrix) -> Any | None:
    """The rows as a sparse matrix where that is quicker to multiply with: bounds and constraints of single entries.

    >>> without_zeros(np.eye(200)).nnz
    200
    >>> without_zeros(np.ones((200, 200))) is None
    True
    """
    least, density = MOSTLY_ZERO
    if rows.size < least or np.count_nonzero(rows) > density * rows.size:
        return None
    from scipy.sparse import csr_array

    return csr_array(rows)


class Form(Protocol):
    """The matrix G·H·Gᵀ, and H times combinations of the rows of G. It holds until H is updated."""

    @property
    def matrix(self) -> Matrix | Product:
        """G·H·Gᵀ, symmetric."""

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself where it is known."""


class DenseForm:
    """The form from H·Gᵀ, which is n × rows."""

    def __init__(self, rows: Matrix, scaled: Matrix, thin: Any | None = None) -> None:
        """`thin` are the rows once more, without their zeros, where there are many."""
        self.scaled = scaled.T
        """H times each row."""
        # With many more gradients than variables it is better left as a product.
        self.matrix: Matrix | Product
        if len(rows) > max(FORMED, 2 * len(scaled)):
            self.matrix = Product(rows, np.ascontiguousarray(scaled.T))
        else:
            matrix = (rows if thin is None else thin) @ scaled
            self.matrix = 0.5 * (matrix + matrix.T)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on."""
        step: Vector = weights @ self.scaled[first:]
        return step

    def remember(self, keys: Keys) -> DenseForm:
        """Let `extended` find its rows by their keys."""
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        return self

    def extended(self, rows: Matrix, keys: Keys, apply: Callable[[Matrix], Matrix]) -> DenseForm | None:
        """The form for other rows, where nearly all of them are among those of this one; None where they are not.

        Between two programs at one point one gradient is gathered: what it has to do with the others is all that is new.
        """
        if isinstance(self.matrix, Product) or len(rows) > max(FORMED, 2 * rows.shape[1]):
            return None
        places = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        fresh = np.nonzero(self._sorted[places] != keys)[0]
        if len(fresh) > max(1, len(keys) // 8):
            return None
        known = self._order[places]
        form = DenseForm.__new__(DenseForm)
        form.scaled, form.matrix = self.scaled[known], self.matrix[known[:, None], known]
        if len(fresh):
            scaled = apply(rows[fresh].T)
            columns = rows @ scaled
            corner = columns[fresh]
            columns[fresh] = 0.5 * (corner + corner.T)
            form.scaled[fresh] = scaled.T
            form.matrix[:, fresh] = columns
            form.matrix[fresh] = columns.T
        return form.remember(keys)


class ScaledForm:
    """The form for γI, from that of the identity."""

    def __init__(self, plain: DenseForm, gamma: float) -> None:
        self._plain, self._gamma = plain, gamma
        matrix = plain.matrix
        self.matrix = gamma * matrix if isinstance(matrix, np.ndarray) else Product(matrix.left, gamma * matrix.right)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """γ·r for the combination r of the rows from `first` on."""
        return self._gamma * self._plain.step(weights, first=first)
