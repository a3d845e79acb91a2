"""What BFGS has added to a multiple of the identity, as long as that is less to read than a matrix of n × n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lu_factor, lu_solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FIRST = 16
"""Corrections for which there is room at the beginning; it doubles when it is used up."""


def low_rank_solver(gamma: float, rows: Matrix, inverse: Matrix) -> Callable[[Vector], Vector]:
    """Solves systems with γI + RᵀMR, from the rows R and M⁻¹, by the formula of Sherman, Morrison and Woodbury.

    >>> low_rank_solver(1.0, np.array([[1.0, 0.0]]), np.array([[1.0]]))(np.array([4.0, 3.0]))
    array([2., 3.])
    """
    if not len(rows):
        return lambda vector: vector / gamma
    factor = lu_factor(inverse + rows @ rows.T / gamma, check_finite=False)
    return lambda vector: (vector - rows.T @ lu_solve(factor, rows @ vector, check_finite=False) / gamma) / gamma


class Corrections:
    """γI + Σ (sᵢuᵢᵀ + uᵢsᵢᵀ): what the whole matrix would be, not yet added up.

    The rows lie as s₁, u₁, s₂, u₂, …, so that a product with all of them is one product with a matrix.

    >>> corrections = Corrections(2, gamma=3.0)
    >>> corrections.add(np.array([1.0, 0.0]), np.array([0.0, 0.5]))
    >>> corrections.apply(np.array([1.0, 2.0]))
    array([4. , 6.5])
    >>> np.triu(corrections.added_up())
    array([[3. , 0.5],
           [0. , 3. ]])
    """

    def __init__(self, size: int, *, gamma: float) -> None:
        self._size, self.gamma = size, gamma
        self._rows: Matrix = np.empty((2 * FIRST, size))
        self._count = 0

    def __len__(self) -> int:
        """How many were added."""
        return self._count

    @property
    def rows(self) -> Matrix:
        """s and u in turns, oldest first; not to be written to."""
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

    def apply(self, columns: NDArray[np.float64], thin: Any | None = None) -> NDArray[np.float64]:
        """The matrix times a vector or columns; `thin` are the columns as sparse rows, where most of them is 0."""
        vectors, rows = columns.T, self.rows
        result: NDArray[np.float64] = self.gamma * vectors
        if self._count:
            products = (vectors if thin is None else thin) @ rows.T
            turned = products.reshape(-1, self._count, 2)[:, :, ::-1].reshape(products.shape)  # s·v belongs to u, u·v to s
            result += turned @ rows
        return result.T

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """Solves systems with the rows and columns that belong to some variables."""
        order = np.arange(2 * self._count).reshape(-1, 2)[:, ::-1].ravel()
        return low_rank_solver(self.gamma, self.rows[:, chosen], np.eye(2 * self._count)[order])

    def added_up(self) -> Matrix:
        """The upper triangle of all of it, in a matrix whose other entries mean nothing."""
        matrix = np.zeros((self._size, self._size), order="F")
        np.fill_diagonal(matrix, self.gamma)
        if self._count:
            steps, others = self.rows[0::2].T, self.rows[1::2].T
            matrix = blas.dsyr2k(1.0, steps, others, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        return np.asarray(matrix).T  # by columns it was the lower one
