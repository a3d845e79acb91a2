"""A convex quadratic program over a simplex and a box, and how good an answer to it is."""

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


class Pull(NamedTuple):
    """A row whose weight is always 1, so that it is no entry of the program."""

    products: Vector
    """With the rows of the entries; they are part of the linear term."""
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
    pull: Pull | None = None

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
        """Square roots of the diagonal of Q, 1 where that vanishes."""
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
        """What rounding may do to an entry of Q·y, in the units of `residual`; where y is 0, next to nothing."""
        nothing = 1e-25 * float(self.scale.max(initial=0.0))
        if isinstance(self.matrix, Product):  # by the inequality of Cauchy and Schwarz
            pulled = 0.0 if self.pull is None else float(np.sqrt(max(self.pull.square, 0.0)))
            return max(nothing, 1e-14 * (float(self.scale @ np.abs(y)) + pulled))
        sums = np.abs(self.matrix) @ np.abs(y)
        if self.pull is not None:
            sums += np.abs(self.pull.products)
        return max(nothing, 1e-14 * float(np.max(sums / self.scale, initial=0.0)))

    def measure(self, y: Vector, square: float, linear: float) -> float:
        """The root of what is minimized, from yᵀQy and qᵀy: errors are judged by it.

        With a row that pulls, the sum of all is often shorter by far than its parts.
        """
        if self.pull is not None:
            pulled = float(self.pull.products @ y)
            square, linear = square + 2.0 * pulled + self.pull.square, linear - pulled
        return float(np.sqrt(max(square, 0.0)) + np.sqrt(abs(linear)))

    def value(self, y: Vector) -> float:
        """The objective at y."""
        return float(0.5 * y @ (self.matrix @ y) + self.linear @ y)

    def feasible(self, y: Vector) -> Vector | None:
        """y moved into the simplex and the box; None if that is not possible."""
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
        """How far a feasible y is from satisfying the optimality conditions, relative to the root of the objective.

        It is the way y would move under a scaled gradient step kept inside the bounds, measured in the metric of Q.
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
        elif self.simplex:  # their sum bounds these: at 1, a slope that is far too steep would look like a gentle one
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
    """An answer to a quadratic program."""

    y: Vector
    residual: float
    trusted: bool
    """Whether the residual is small; a direction from an untrusted answer is still tried."""
