"""A Cholesky factor of the part of a matrix that belongs to a changing set of entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FLOOR = 1e-13
"""The smallest pivot, as a fraction of the entry of the diagonal: where a row depends on those before it."""


class Factor:
    """L with L·Lᵀ = the matrix of some entries, in the order in which they came.

    A pivot that vanishes is replaced by a tiny one. A step computed with it is a long one along the direction in which
    the matrix is flat, which is where it should go: a bound will stop it.

    >>> factor = Factor()
    >>> factor.append(np.zeros(0), 4.0)
    >>> factor.append(np.array([2.0]), 2.0)
    >>> factor.solve(np.array([6.0, 4.0]))
    array([1., 1.])
    >>> factor.delete(0)
    True
    >>> factor.solve(np.array([4.0]))
    array([2.])
    """

    def __init__(self, room: int = 32) -> None:
        self._lower: Matrix = np.zeros((room, room), order="F")  # 0 above the diagonal, always
        self.count = 0

    def rebuild(self, matrix: Matrix) -> None:
        """Begin again with all entries of a matrix."""
        self.count = 0
        count = len(matrix)
        self._reserve(count)
        ridge = FLOOR
        while count:
            lower, failed = lapack.dpotrf(matrix + np.diag(ridge * np.diag(matrix)), lower=1, clean=1)
            if not failed:
                self._lower[:count, :count] = lower
                break
            ridge *= 100.0
            if not ridge < 1.0:  # not the matrix of a convex program; any direction will do
                self._lower[:count, :count] = np.diag(np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300)))
                break
        self.count = count

    def append(self, column: Vector, diagonal: float) -> None:
        """One more entry at the end: its products with those before, and with itself."""
        count = self.count
        self._reserve(count + 1)
        if count:
            row = lapack.dtrtrs(self._lower[:count, :count], column, lower=1)[0]
            self._lower[count, :count] = row
            diagonal = max(diagonal - float(row @ row), FLOOR * diagonal)
        self._lower[count, count] = np.sqrt(max(diagonal, 1e-300))
        self.count = count + 1

    def delete(self, position: int) -> bool:
        """Take an entry out; what came after it is factorized anew. False where that failed, and all must be."""
        lower, count = self._lower, self.count
        self.count = count - 1
        if position + 1 < count:
            tail, rest = slice(position + 1, count), slice(position, count - 1)
            rows = lower[tail, position:count]
            anew, failed = lapack.dpotrf(rows @ rows.T, lower=1, clean=1)
            if failed:
                return False
            lower[rest, :position] = lower[tail, :position].copy()
            lower[rest, rest] = anew
        return True

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """The solution for one right-hand side, or for several, one column each."""
        solution: NDArray[np.float64] = lapack.dpotrs(self._lower[: self.count, : self.count], right, lower=1)[0]
        return solution

    def _reserve(self, count: int) -> None:
        if count > len(self._lower):
            larger = np.zeros((2 * count, 2 * count), order="F")
            larger[: self.count, : self.count] = self._lower[: self.count, : self.count]
            self._lower = larger
