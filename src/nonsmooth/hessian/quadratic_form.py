"""The Hessian G·H·Gᵀ of the dual quadratic program, from an inverse Hessian H and rows G of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.product import Product

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

MAX_FORMED_ROWS = 500
"""The matrix is formed for up to this many gradients, and for more if there are at most twice as many as variables."""
MIN_SPARSE_ENTRIES, MAX_SPARSE_DENSITY = 20_000, 0.1
"""Rows with at least this many entries and at most this fraction of nonzeros are multiplied as a sparse matrix."""


def sparse_rows(rows: Matrix) -> Any | None:
    """The rows as a sparse matrix if that multiplies faster (bounds and constraints on single entries), otherwise None.

    >>> sparse_rows(np.eye(200)).nnz
    200
    >>> sparse_rows(np.ones((200, 200))) is None
    True
    """
    if rows.size < MIN_SPARSE_ENTRIES or np.count_nonzero(rows) > MAX_SPARSE_DENSITY * rows.size:
        return None
    from scipy.sparse import csr_array

    return csr_array(rows)


class QuadraticForm(Protocol):
    """The matrix G·H·Gᵀ, and H times combinations of the rows of G; valid until H is updated."""

    @property
    def matrix(self) -> Matrix | Product:
        """G·H·Gᵀ, symmetric."""

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself, if known."""


class DenseForm:
    """The quadratic form from H·Gᵀ, which is n × rows."""

    def __init__(self, rows: Matrix, scaled: Matrix, sparse: Any | None = None) -> None:
        """`sparse` is a sparse copy of the rows, if most of their entries are 0."""
        self.scaled = scaled.T
        """H times each row."""
        # With many more gradients than variables the matrix is not formed.
        self.matrix: Matrix | Product
        if len(rows) > max(MAX_FORMED_ROWS, 2 * len(scaled)):
            self.matrix = Product(rows, np.ascontiguousarray(scaled.T))
        else:
            matrix = (rows if sparse is None else sparse) @ scaled
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
        """The form for other rows that nearly all belong to this form too; None if they do not.

        After a null step there is one new gradient, and only its products with the others have to be computed.
        """
        if isinstance(self.matrix, Product) or len(rows) > max(MAX_FORMED_ROWS, 2 * rows.shape[1]):
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
    """The quadratic form for γI, from that of the identity."""

    def __init__(self, plain: DenseForm, gamma: float) -> None:
        self._plain, self._gamma = plain, gamma
        matrix = plain.matrix
        self.matrix = gamma * matrix if isinstance(matrix, np.ndarray) else Product(matrix.left, gamma * matrix.right)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """γ·r for the combination r of the rows from `first` on."""
        return self._gamma * self._plain.step(weights, first=first)
