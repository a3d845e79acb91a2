"""Linear functions kept from earlier points, and how far each of them may be from the truth elsewhere."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.rows import LARGE, PIECE, Rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LOCALITY = 1e-3
"""A linearisation from a point at distance r counts as lying LOCALITY·r² too low at least, whatever it says itself."""

_keys = count(-1, -1)


class Linearisations:
    """A queue of (point, value, gradient); the oldest goes when it is full.

    Up to LARGE variables they lie in matrices. Above, the vectors themselves are kept: nothing is copied, whoever else
    holds them, and what depends on the point from which they are seen is computed once for each point.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self.capacity, self._large, self._size = capacity, size > LARGE, size
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self.values: Vector = np.zeros(0)
        self.keys: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """A number for each that no other gradient has."""
        self._points: Matrix = np.zeros((0, self._size))
        self._matrix: Matrix = np.zeros((0, self._size))
        self._point_list: list[Vector] = []
        self._row_list: list[Vector] = []
        self._seen: list[tuple[float, float]] = []
        self._from: Vector | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> Matrix | Rows:
        """The gradients, oldest first."""
        return Rows(self._row_list) if self._large else self._matrix

    def add(self, point: Vector, value: float, row: Vector) -> None:
        """Keep one more. The vectors are kept as they are and must not be changed afterwards."""
        first = 1 if len(self) == self.capacity else 0
        self.values = np.append(self.values[first:], value)
        self.keys = np.append(self.keys[first:], next(_keys))
        if self._large:
            self._point_list = [*self._point_list[first:], point]
            self._row_list = [*self._row_list[first:], row]
            self._seen = self._seen[first:]
        else:
            self._points = np.concatenate([self._points[first:], point[None]])
            self._matrix = np.concatenate([self._matrix[first:], row[None]])

    def errors(self, x: Vector, values: float | Vector) -> Vector:
        """How far each lies from the values at x, or LOCALITY times the squared distance if that is more."""
        if self._large:
            self._look(x)
            along, squares = np.array(self._seen).reshape(-1, 2).T
        else:
            offsets = x - self._points
            along = np.einsum("ij,ij->i", self._matrix, offsets)
            squares = np.einsum("ij,ij->i", offsets, offsets)
        error: Vector = np.maximum(np.abs(values - self.values - along), LOCALITY * squares)
        return error

    def _look(self, x: Vector) -> None:
        """Compute row·(x − point) and |x − point|² where they are not known, for the large ones."""
        if self._from is not x:
            self._from, self._seen = x, []
        buffer = np.empty(min(PIECE, len(x)))
        for point, row in zip(self._point_list[len(self._seen) :], self._row_list[len(self._seen) :], strict=True):
            along = square = 0.0
            for start in range(0, len(x), PIECE):
                here = x[start : start + PIECE]
                offset = np.subtract(here, point[start : start + PIECE], out=buffer[: len(here)])
                along += float(row[start : start + PIECE].dot(offset))
                square += float(offset.dot(offset))
            self._seen.append((along, square))

    def nearby(self, x: Vector, radius: float) -> list[tuple[Vector, float, Vector]]:
        """(point, value, gradient) of those within a distance of x."""
        if self._large:
            self._look(x)
            points, rows, squares = self._point_list, self._row_list, np.array([square for _, square in self._seen])
        else:
            offsets = x - self._points
            points, rows, squares = list(self._points), list(self._matrix), np.einsum("ij,ij->i", offsets, offsets)
        return [(points[i], float(self.values[i]), rows[i]) for i in np.nonzero(squares <= radius * radius)[0]]

    def arrays(self) -> dict[str, Any]:
        """Points, values and rows, for saving."""
        points = np.array(self._point_list).reshape(-1, self._size) if self._large else self._points
        rows = np.array(self._row_list).reshape(-1, self._size) if self._large else self._matrix
        return {"points": points, "values": self.values, "rows": rows}

    def restore(self, points: Matrix, values: Vector, rows: Matrix) -> None:
        """Take over what `arrays` gave."""
        self.clear()
        for point, value, row in zip(points, values, rows, strict=True):
            self.add(np.array(point, dtype=np.float64), float(value), np.array(row, dtype=np.float64))
