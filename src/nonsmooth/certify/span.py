"""Splits a vector into a combination of given gradients and the part outside their span."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MIN_INDEPENDENT_PART = 1e-10
"""A remainder shorter than this fraction of the vector counts as rounding error."""


class Span:
    """The span of the rows of a matrix, without the rows at the indices `excluding`.

    If the rows span a vector, the remainder is rounding error with an arbitrary direction. A remainder counts as rounding error
    if it is shorter than the fraction `dependent` of the vector; a row with such a remainder is not used.

    >>> span = Span(np.array([[2.0, 0.0, 0.0], [4.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    >>> span.orthogonal_part(np.array([6.0, 5.0, 7.0]))
    array([0., 0., 7.])
    >>> span.multipliers(np.array([6.0, 5.0, 7.0])) @ span.rows
    array([6., 5., 0.])
    """

    def __init__(self, rows: Matrix, *, excluding: Collection[int] = (), dependent: float = MIN_INDEPENDENT_PART) -> None:
        self.rows, self._dependent = rows, dependent
        indices = np.array([index for index in range(len(rows)) if index not in excluding], dtype=np.intp)
        self._lengths = np.maximum(np.linalg.norm(rows[indices], axis=1), 1e-300)
        self._rank = 0
        self.finite = bool(np.isfinite(rows[indices]).all())
        if not len(indices) or not self.finite:
            return
        directions = rows[indices].T
        directions /= self._lengths  # in place: indexing has made a copy
        self._basis, self._factor, order = qr(directions, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
        pivots = np.abs(np.diagonal(self._factor))
        self._rank = int((pivots > dependent).sum())
        independent = order[: self._rank]
        self._indices, self._lengths = indices[independent], self._lengths[independent]
        self._basis, self._factor = self._basis[:, : self._rank], self._factor[: self._rank, : self._rank]

    def orthogonal_part(self, vector: Vector, *, drop_rounding_errors: bool = False) -> Vector:
        """The component of a vector orthogonal to the rows; the vector itself if there are no rows.

        With `drop_rounding_errors`, a component that may consist of rounding errors only is replaced by 0.
        """
        if not self._rank:
            return vector
        rest: Vector = vector - self._basis @ (vector @ self._basis)
        rest -= self._basis @ (rest @ self._basis)  # reorthogonalization against rounding errors
        # The comparison is false if any entry is NaN.
        negligible = drop_rounding_errors and np.abs(rest).max() <= self._dependent * np.abs(vector).max()
        return np.zeros_like(vector) if negligible else rest

    def multipliers(self, vector: Vector) -> Vector:
        """Weights of the rows whose sum is the component of a vector in the span; 0 for dependent rows."""
        weights = np.zeros(len(self.rows))
        if self._rank:
            weights[self._indices] = solve_triangular(self._factor, vector @ self._basis, check_finite=False) / self._lengths
        return weights
