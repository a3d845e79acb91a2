"""Nonnegative least squares by the active-set method of Lawson and Hanson.

`scipy.optimize.nnls` does the same and is called for large problems. Importing `scipy.optimize` takes longer than a short run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from nonsmooth.arrays.norm import norm

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MAX_COLUMNS_IN_PYTHON = 60
"""Above this number of columns, SciPy's compiled code saves more time than its import takes."""
MIN_INDEPENDENT_PART = 1e-13
"""A column counts as dependent if the part outside the span of the others is not longer than this fraction of its length."""


def nnls(matrix: Matrix, target: Vector, *, maxiter: int) -> tuple[Vector, float]:
    """The minimizer x ≥ 0 of |matrix·x − target|, and the distance; raises RuntimeError after `maxiter` solves.

    >>> nnls(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array([2.0, -1.0, 0.0]), maxiter=10)
    (array([2., 0.]), 1.0)
    """
    columns = matrix.shape[1]
    if columns > MAX_COLUMNS_IN_PYTHON:
        from scipy.optimize import nnls as compiled

        x, distance = compiled(matrix, target, maxiter=maxiter)
        return x, float(distance)
    x, passive = np.zeros(columns), _Columns(matrix, target)
    residual, solutions = target, 0
    slopes = residual @ matrix
    while True:
        slopes[passive.indices] = 0.0
        entering = int(np.argmax(slopes)) if columns else 0
        if not columns or not slopes[entering] > 0.0:
            return x, norm(residual)
        earlier_columns, earlier_x = list(passive.indices), x.copy()
        values = passive.solution() if passive.add(entering) else None
        if values is None or not values[-1] > 0.0:  # the column seemed to help only because of rounding
            if values is not None:
                passive.remove_last()
            slopes[entering] = 0.0
            continue
        while True:
            solutions += 1
            if solutions > maxiter:
                raise RuntimeError(f"no solution after {maxiter} least-squares problems")
            indices = passive.indices
            if values.min() > 0.0:
                x[:] = 0.0
                x[indices] = values
                break
            before, falling = x[indices], values <= 0.0
            ratios = before[falling] / (before[falling] - values[falling])
            shortened = before + float(ratios.min()) * (values - before)
            shortened[np.nonzero(falling)[0][ratios <= ratios.min()]] = 0.0
            x[:] = 0.0
            x[indices] = np.maximum(shortened, 0.0)
            passive.choose([index for index, value in zip(indices, shortened.tolist(), strict=True) if value > 0.0])
            values = passive.solution()
        rest = target - matrix @ x
        if norm(rest) < norm(residual):
            residual = rest
            slopes = residual @ matrix
        else:  # again only because of rounding
            x = earlier_x
            passive.choose(earlier_columns)
            slopes[entering] = 0.0


class _Columns:
    """Some columns of a matrix with their QR factorization."""

    def __init__(self, matrix: Matrix, target: Vector) -> None:
        rows, columns = matrix.shape
        self._matrix, self._target, self.indices = matrix, target, list[int]()
        max_rank = min(rows, columns)
        self._basis, self._factor = np.empty((rows, max_rank), order="F"), np.zeros((max_rank, max_rank), order="F")

    def add(self, index: int) -> bool:
        """Add a column; False if it is a combination of the others."""
        count = len(self.indices)
        if count == self._basis.shape[1]:
            return False
        column, basis = self._matrix[:, index], self._basis[:, :count]
        along = column @ basis
        rest = column - basis @ along
        correction = rest @ basis  # reorthogonalization against rounding errors
        rest -= basis @ correction
        length = norm(rest)
        if not length > MIN_INDEPENDENT_PART * norm(column):
            return False
        self._factor[:count, count], self._factor[count, count] = along + correction, length
        self._basis[:, count] = rest / length
        self.indices.append(index)
        return True

    def remove_last(self) -> None:
        """Remove the column that was added last."""
        self.indices.pop()

    def choose(self, indices: list[int]) -> None:
        """Start over with other columns, which are known to be independent."""
        self.indices = list(indices)
        count = len(indices)
        self._basis[:, :count], self._factor[:count, :count] = np.linalg.qr(self._matrix[:, indices])

    def solution(self) -> Vector:
        """The least-squares solution with these columns alone."""
        count = len(self.indices)
        along = self._target @ self._basis[:, :count]
        solution, _ = lapack.dtrtrs(self._factor[:count, :count], along)
        return np.asarray(solution)
