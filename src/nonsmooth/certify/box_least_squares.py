"""Least squares within bounds by the active-set method of Stark and Parker.

`scipy.optimize.lsq_linear` does the same; to import `scipy.optimize` takes longer than a short run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def box_least_squares(matrix: Matrix, target: Vector, lower: Vector, upper: Vector) -> Vector:
    """The x between two bounds, which may be infinite, for which |matrix·x − target| is smallest, or nearly so.

    >>> box_least_squares(np.eye(2), np.array([0.5, 3.0]), np.zeros(2), np.ones(2))
    array([0.5, 1. ])
    """
    count = matrix.shape[1]
    x: Vector = np.clip(np.linalg.lstsq(matrix, target, rcond=None)[0], lower, upper)
    free = (x > lower) & (x < upper)
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    rounding = 1e-14 * (1.0 + float(np.linalg.norm(target)))
    refused = np.zeros(count, dtype=bool)
    """Entries that left their bound only to come back, since x last moved."""
    for _ in range(3 * count + 10):
        x = _within(matrix, target, lower, upper, x, free)
        slopes = (matrix.T @ (target - matrix @ x)) / scale
        wanted = np.where(free | refused, 0.0, np.where(x <= lower, slopes, np.where(x >= upper, -slopes, 0.0)))
        entering = int(np.argmax(wanted)) if count else 0
        if not count or not wanted[entering] > rounding:
            return x
        free[entering] = True
        before = x.copy()
        x = _within(matrix, target, lower, upper, x, free)
        refused = np.zeros(count, dtype=bool) if np.any(x != before) else refused
        refused[entering] = not free[entering]
    return x


def _within(matrix: Matrix, target: Vector, lower: Vector, upper: Vector, x: Vector, free: NDArray[np.bool_]) -> Vector:
    """The best free entries, of which those that reach a bound stay there and are free no more."""
    x = x.copy()
    while free.any():
        chosen = np.nonzero(free)[0]
        rest = target - matrix[:, ~free] @ x[~free]
        best = np.linalg.lstsq(matrix[:, chosen], rest, rcond=None)[0]
        way = best - x[chosen]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(
                way > 0, (upper[chosen] - x[chosen]) / way, np.where(way < 0, (lower[chosen] - x[chosen]) / way, np.inf)
            )
        length = min(1.0, float(room.min()))
        x[chosen] = np.clip(x[chosen] + length * way, lower[chosen], upper[chosen])
        if length == 1.0:
            break
        stopped = chosen[room <= length]
        x[stopped] = np.where(way[room <= length] > 0, upper[stopped], lower[stopped])
        free[stopped] = False
    return x
