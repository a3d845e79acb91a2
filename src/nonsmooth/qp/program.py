"""A convex quadratic program over a simplex and a box, and the residual of a solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.product import Product

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

RELATIVE_ROUNDING = 1e-14
"""Rounding error of an entry of Q·y, relative to the sum of the magnitudes of its terms."""
MIN_RELATIVE_ROUNDING = 1e-25
"""Smallest rounding error that is assumed, relative to the largest scale of an entry."""


class FixedRow(NamedTuple):
    """A row whose weight is always 1, so that it is not an entry of the program."""

    products: Vector
    """Its products with the rows of the entries; they are included in the linear term."""
    square: float


@dataclass(frozen=True)
class Program:
    """min ½ yᵀQy + qᵀy, where the first `simplex` entries are ≥ 0 and sum to 1, the others lie between two bounds.

    `lower` and `upper` are those of all entries; for the simplex they are 0 and 1.

    >>> Program(np.eye(2), np.array([-3.0, 1.0]), np.zeros(2), np.ones(2)).residual(np.array([1.0, 0.0]))
    0.0
    """

    matrix: Matrix | Product
    linear: Vector
    lower: Vector
    upper: Vector
    simplex: int = 0
    fixed_row: FixedRow | None = None

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.linear)

    @property
    def rank(self) -> int:
        """An upper bound on the rank of Q."""
        return min(self.size, self.matrix.left.shape[1]) if isinstance(self.matrix, Product) else self.size

    @cached_property
    def diagonal(self) -> Vector:
        """The diagonal of Q."""
        return self.matrix.diagonal if isinstance(self.matrix, Product) else np.diag(self.matrix)

    @cached_property
    def scale(self) -> Vector:
        """The square roots of Q's diagonal, with 1 for zeros."""
        root = np.sqrt(np.maximum(self.diagonal, 0.0))
        return np.where(root > 1e-150, root, 1.0)

    @cached_property
    def dense(self) -> Matrix:
        """Q as a matrix."""
        return self.matrix.dense() if isinstance(self.matrix, Product) else self.matrix

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        """Some rows and columns of Q."""
        if isinstance(self.matrix, Product):
            block: Matrix = self.matrix.left[rows] @ self.matrix.right[columns].T
            return block
        return self.matrix[rows[:, None], columns]

    def combined(self, columns: Indices, weights: Vector) -> Vector:
        """Q times a vector that is 0 outside some entries."""
        if isinstance(self.matrix, Product):
            product: Vector = self.matrix.left @ (weights @ self.matrix.right[columns])
            return product
        return weights @ self.matrix[columns]

    def rounding(self, y: Vector) -> float:
        """The rounding error of an entry of Q·y, in the units of `residual`; close to 0 for y = 0."""
        least = MIN_RELATIVE_ROUNDING * float(self.scale.max(initial=0.0))
        if isinstance(self.matrix, Product):  # by the Cauchy–Schwarz inequality
            fixed = 0.0 if self.fixed_row is None else float(np.sqrt(max(self.fixed_row.square, 0.0)))
            return max(least, RELATIVE_ROUNDING * (float(self.scale @ np.abs(y)) + fixed))
        sums = np.abs(self.matrix) @ np.abs(y)
        if self.fixed_row is not None:
            sums += np.abs(self.fixed_row.products)
        return max(least, RELATIVE_ROUNDING * float(np.max(sums / self.scale, initial=0.0)))

    def measure(self, y: Vector, square: float, linear: float) -> float:
        """The square root of the objective, from yᵀQy and qᵀy, to which errors are relative.

        With a fixed row the combined gradient is often much shorter than its parts, so that row is included.
        """
        if self.fixed_row is not None:
            product = float(self.fixed_row.products @ y)
            square, linear = square + 2.0 * product + self.fixed_row.square, linear - product
        return float(np.sqrt(max(square, 0.0)) + np.sqrt(abs(linear)))

    def value(self, y: Vector) -> float:
        """The objective at y."""
        return float(0.5 * y @ (self.matrix @ y) + self.linear @ y)

    def feasible(self, y: Vector) -> Vector | None:
        """y clipped to the box and scaled to the simplex; None if that is not possible."""
        if not np.isfinite(y).all():
            return None
        y = np.clip(y, self.lower, self.upper)
        if self.simplex:
            total = y[: self.simplex].sum()
            if not total > 0:
                return None
            y[: self.simplex] /= total
        return y

    def residual(self, y: Vector) -> float:
        """How far a feasible y is from satisfying the optimality conditions, relative to the square root of the objective.

        This is the largest change of y, measured in the metric of Q, under a diagonally scaled projected-gradient step.
        """
        product = self.matrix @ y
        slope = product + self.linear
        if self.simplex:
            weights = y[: self.simplex]
            slope[: self.simplex] -= float(weights @ slope[: self.simplex])
        scale = self.scale
        moved = np.clip(y - slope / scale**2, self.lower, self.upper)
        if self.simplex == 1:
            moved[0] = y[0]
        elif self.simplex:  # the sum bounds these: clipping at 1 would hide slopes that are far too steep
            part = slice(0, self.simplex)
            moved[part] = np.maximum(weights - slope[part] / scale[part] ** 2, 0.0)
        size = self.measure(y, float(y @ product), float(self.linear @ y))
        rounding = self.rounding(y)
        error = float(np.max(np.abs(y - moved) * scale, initial=0.0))
        if not (isfinite(error) and isfinite(rounding)):
            return np.inf
        return float((error - rounding) / max(size + rounding, 1e-300)) if error > rounding else 0.0


@dataclass(frozen=True)
class Solution:
    """A solution of a quadratic program."""

    y: Vector
    residual: float
    trusted: bool
    """Whether the residual is small; a direction from an untrusted solution is still tried."""
