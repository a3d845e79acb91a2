"""A Cholesky factor of the principal submatrix for a changing set of entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FLOOR = 1e-13
"""The smallest pivot, as a fraction of the diagonal entry; it replaces the pivot of a row that depends on earlier ones."""


class Factor:
    """L with L·Lᵀ = the submatrix of some entries, in the order in which they were added.

    A zero pivot is replaced by a tiny one. A step computed with it is long along the null direction of the matrix, as it should
    be: a bound stops it.

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
        """Factorize a whole matrix."""
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
            if not ridge < 1.0:  # the program is not convex, so any direction is acceptable
                self._lower[:count, :count] = np.diag(np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300)))
                break
        self.count = count

    def append(self, column: Vector, diagonal: float) -> None:
        """Append an entry, given its products with earlier entries and with itself."""
        count = self.count
        self._reserve(count + 1)
        if count:
            row = lapack.dtrtrs(self._lower[:count, :count], column, lower=1)[0]
            self._lower[count, :count] = row
            diagonal = max(diagonal - float(row @ row), FLOOR * diagonal)
        self._lower[count, count] = np.sqrt(max(diagonal, 1e-300))
        self.count = count + 1

    def delete(self, position: int) -> bool:
        """Remove an entry and refactorize the ones after it; False if that failed and everything must be rebuilt."""
        lower, count = self._lower, self.count
        self.count = count - 1
        if position + 1 < count:
            tail, rest = slice(position + 1, count), slice(position, count - 1)
            rows = lower[tail, position:count]
            refactored, failed = lapack.dpotrf(rows @ rows.T, lower=1, clean=1)
            if failed:
                return False
            lower[rest, :position] = lower[tail, :position].copy()
            lower[rest, rest] = refactored
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
