"""BFGS corrections to a multiple of the identity, stored while they take less memory than an n × n matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lu_factor, lu_solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

INITIAL_CAPACITY = 16
"""The initial capacity in corrections; it doubles when it is used up."""


def low_rank_solver(gamma: float, rows: Matrix, inverse: Matrix) -> Callable[[Vector], Vector]:
    """A solver for systems with γI + RᵀMR, from R and M⁻¹, by the Sherman–Morrison–Woodbury formula.

    >>> low_rank_solver(1.0, np.array([[1.0, 0.0]]), np.array([[1.0]]))(np.array([4.0, 3.0]))
    array([2., 3.])
    """
    if not len(rows):
        return lambda vector: vector / gamma
    factor = lu_factor(inverse + rows @ rows.T / gamma, check_finite=False)
    return lambda vector: (vector - rows.T @ lu_solve(factor, rows @ vector, check_finite=False) / gamma) / gamma


class Corrections:
    """γI + Σ (sᵢuᵢᵀ + uᵢsᵢᵀ) as separate corrections.

    The rows are stored as s₁, u₁, s₂, u₂, …, so that a product with all of them is one matrix product.

    >>> corrections = Corrections(2, gamma=3.0)
    >>> corrections.add(np.array([1.0, 0.0]), np.array([0.0, 0.5]))
    >>> corrections.apply(np.array([1.0, 2.0]))
    array([4. , 6.5])
    >>> np.triu(corrections.upper_triangle())
    array([[3. , 0.5],
           [0. , 3. ]])
    """

    def __init__(self, size: int, *, gamma: float) -> None:
        self._size, self.gamma = size, gamma
        self._rows: Matrix = np.empty((2 * INITIAL_CAPACITY, size))
        self._count = 0

    def __len__(self) -> int:
        """The number of corrections."""
        return self._count

    @property
    def rows(self) -> Matrix:
        """s and u alternating, oldest first; read-only."""
        return self._rows[: 2 * self._count]

    def add(self, s: Vector, u: Vector) -> None:
        """Add suᵀ + usᵀ."""
        place = 2 * self._count
        if place == len(self._rows):
            larger = np.empty((2 * place, self._size))
            larger[:place] = self._rows
            self._rows = larger
        self._rows[place], self._rows[place + 1] = s, u
        self._count += 1

    def apply(self, columns: NDArray[np.float64], sparse: Any | None = None) -> NDArray[np.float64]:
        """The matrix times a vector or columns; `sparse` is a sparse copy of the transposed columns, if most entries are 0."""
        vectors, rows = columns.T, self.rows
        result: NDArray[np.float64] = self.gamma * vectors
        if self._count:
            products = (vectors if sparse is None else sparse) @ rows.T
            turned = products.reshape(-1, self._count, 2)[:, :, ::-1].reshape(products.shape)  # s·v belongs to u, u·v to s
            result += turned @ rows
        return result.T

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """A solver for systems with the principal submatrix that belongs to some variables."""
        order = np.arange(2 * self._count).reshape(-1, 2)[:, ::-1].ravel()
        return low_rank_solver(self.gamma, self.rows[:, chosen], np.eye(2 * self._count)[order])

    def upper_triangle(self) -> Matrix:
        """The upper triangle of the sum; the other entries of the returned matrix are undefined."""
        matrix = np.zeros((self._size, self._size), order="F")
        np.fill_diagonal(matrix, self.gamma)
        if self._count:
            steps, others = self.rows[0::2].T, self.rows[1::2].T
            matrix = blas.dsyr2k(1.0, steps, others, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        return np.asarray(matrix).T  # BLAS filled the lower triangle in column-major order
