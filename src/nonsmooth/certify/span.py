"""What of a vector lies outside the span of some gradients, and which combination of them makes up the rest."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

DEPENDENT = 1e-10


class Span:
    """The span of the rows of a matrix, but for those at some places.

    Of a vector that the rows make up, all that is left may be rounding, which points anywhere. It is taken for that where it is
    less than the part `dependent` of the vector's length; of the rows themselves, such a one is not used.

    >>> span = Span(np.array([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    >>> span.outside(np.array([6.0, 5.0, 7.0]))
    array([0., 0., 7.])
    >>> span.multipliers(np.array([6.0, 5.0, 7.0])) @ span.rows
    array([6., 5., 0.])
    """

    def __init__(self, rows: Matrix, *, but: Collection[int] = (), dependent: float = DEPENDENT) -> None:
        self.rows, self._dependent = rows, dependent
        used = np.array([place for place in range(len(rows)) if place not in but], dtype=np.intp)
        self._lengths = np.maximum(np.linalg.norm(rows[used], axis=1), 1e-300)
        self._rank = 0
        self.finite = bool(np.isfinite(rows[used]).all())
        if not len(used) or not self.finite:
            return
        directions = rows[used].T
        directions /= self._lengths  # a copy of its own
        self._basis, self._factor, order = qr(directions, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
        pivots = np.abs(np.diagonal(self._factor))
        self._rank = int((pivots > dependent).sum())
        chosen = order[: self._rank]
        self._places, self._lengths = used[chosen], self._lengths[chosen]
        self._basis, self._factor = self._basis[:, : self._rank], self._factor[: self._rank, : self._rank]

    def outside(self, vector: Vector, *, or_nothing: bool = False) -> Vector:
        """The part of a vector that no combination of the rows takes away; the vector itself where there are no rows.

        `or_nothing`: 0 where that may be rounding.
        """
        if not self._rank:
            return vector
        rest: Vector = vector - self._basis @ (vector @ self._basis)
        rest -= self._basis @ (rest @ self._basis)  # what rounding left
        nothing = (
            or_nothing and np.abs(rest).max() <= self._dependent * np.abs(vector).max()
        )  # not so where one is not a number
        return np.zeros_like(vector) if nothing else rest

    def multipliers(self, vector: Vector) -> Vector:
        """Weights of the rows whose sum is the part of a vector inside the span; 0 for rows that others make up."""
        found = np.zeros(len(self.rows))
        if self._rank:
            found[self._places] = solve_triangular(self._factor, vector @ self._basis, check_finite=False) / self._lengths
        return found
