"""Bounded least squares by the active-set method of Stark and Parker.

`scipy.optimize.lsq_linear` does the same, but importing `scipy.optimize` takes longer than a short run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def box_least_squares(matrix: Matrix, target: Vector, lower: Vector, upper: Vector) -> Vector:
    """An approximate minimizer of |matrix·x − target| between two bounds, which may be infinite.

    >>> box_least_squares(np.eye(2), np.array([0.5, 3.0]), np.zeros(2), np.ones(2))
    array([0.5, 1. ])
    """
    count = matrix.shape[1]
    x: Vector = np.clip(np.linalg.lstsq(matrix, target, rcond=None)[0], lower, upper)
    free = (x > lower) & (x < upper)
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    rounding = 1e-14 * (1.0 + float(np.linalg.norm(target)))
    rejected = np.zeros(count, dtype=bool)
    """Entries that, since x last moved, left their bound and came straight back."""
    for _ in range(3 * count + 10):
        x = _within(matrix, target, lower, upper, x, free)
        slopes = (matrix.T @ (target - matrix @ x)) / scale
        gains = np.where(free | rejected, 0.0, np.where(x <= lower, slopes, np.where(x >= upper, -slopes, 0.0)))
        entering = int(np.argmax(gains)) if count else 0
        if not count or not gains[entering] > rounding:
            return x
        free[entering] = True
        before = x.copy()
        x = _within(matrix, target, lower, upper, x, free)
        rejected = np.zeros(count, dtype=bool) if np.any(x != before) else rejected
        rejected[entering] = not free[entering]
    return x


def _within(matrix: Matrix, target: Vector, lower: Vector, upper: Vector, x: Vector, free: NDArray[np.bool_]) -> Vector:
    """The best free entries; those that reach a bound stay there and are fixed."""
    x = x.copy()
    while free.any():
        columns = np.nonzero(free)[0]
        rest = target - matrix[:, ~free] @ x[~free]
        best = np.linalg.lstsq(matrix[:, columns], rest, rcond=None)[0]
        step = best - x[columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(
                step > 0, (upper[columns] - x[columns]) / step, np.where(step < 0, (lower[columns] - x[columns]) / step, np.inf)
            )
        length = min(1.0, float(limits.min()))
        x[columns] = np.clip(x[columns] + length * step, lower[columns], upper[columns])
        if length == 1.0:
            break
        blocking = columns[limits <= length]
        x[blocking] = np.where(step[limits <= length] > 0, upper[blocking], lower[blocking])
        free[blocking] = False
    return x
