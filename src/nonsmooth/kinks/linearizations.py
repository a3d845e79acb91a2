"""Linear functions kept from earlier points, and how far each of them may be from the truth elsewhere."""

from __future__ import annotations

from itertools import compress, count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import LARGE, PIECE, Rows
from nonsmooth.arrays.window import Window
from nonsmooth.native import address, load
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_keys = count(-1, -1)


class Lines(NamedTuple):
    """Points, values there, gradients as rows, and a number for each that no other gradient has. They never change."""

    points: Matrix
    values: Vector
    rows: Matrix
    keys: NDArray[np.int64]
    places: tuple[int, int, int, int]
    """Where they lie, as long as they are held."""

    def errors(self, x: Vector, values: float | Vector) -> Vector:
        """How far each lies from the values at x, or `locality` times the squared distance if that is more."""
        functions = load()
        if functions is None:
            offsets = x - self.points
            along = np.einsum("ij,ij->i", self.rows, offsets)
            return _error(values - self.values - along, np.einsum("ij,ij->i", offsets, offsets))
        errors = np.empty(len(self.values))
        x = np.ascontiguousarray(x)
        one, held = (float(values), None) if np.ndim(values) == 0 else (0.0, np.ascontiguousarray(values, dtype=np.float64))
        several = None if held is None else address(held)
        functions.errors(
            address(self.points), address(self.rows), address(self.values), len(errors), self.rows.shape[1], address(x),
            several, one, THRESHOLDS.locality, address(errors),
        )  # fmt: skip
        return errors


def _error(apart: Vector, squares: Vector) -> Vector:
    error: Vector = np.maximum(np.abs(apart), THRESHOLDS.locality * squares)
    return error


class Linearizations:
    """A queue of (point, value, gradient); the oldest goes when it is full.

    Up to LARGE variables they lie in matrices. Above, the vectors themselves are kept: nothing is copied, whoever else
    holds them, and what depends on the point from which they are seen is computed once for each point.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self.capacity, self._large, self._size = capacity, size > LARGE, size
        self.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Copies lie elsewhere in memory, and get keys of their own."""
        return {"size": self._size, "capacity": self.capacity, **self.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.capacity, self._large, self._size = state["capacity"], state["size"] > LARGE, state["size"]
        self.restore(state["points"], state["values"], state["rows"])

    def clear(self) -> None:
        """Forget all of them."""
        self._values = Window(np.zeros(0), self.capacity)
        self._keys = Window(np.zeros(0, dtype=np.int64), self.capacity)
        self._points = Window(np.zeros((0, self._size)), self.capacity)
        self._matrix = Window(np.zeros((0, self._size)), self.capacity)
        self._point_list: list[Vector] = []
        self._row_list: list[Vector] = []
        self._seen: list[tuple[float, float]] = []
        self._from: Vector | None = None

    def __len__(self) -> int:
        return len(self._values.kept)

    @property
    def values(self) -> Vector:
        """The values, oldest first."""
        return self._values.kept

    @property
    def keys(self) -> NDArray[np.int64]:
        """A number for each that no other gradient has."""
        return self._keys.kept

    @property
    def rows(self) -> Matrix | Rows:
        """The gradients, oldest first."""
        return Rows(self._row_list) if self._large else self._matrix.kept

    def add(self, point: Vector, value: float, row: Vector) -> None:
        """Keep one more. The vectors are kept as they are and must not be changed afterwards."""
        first = 1 if len(self) == self.capacity else 0
        self._values.add(value)
        self._keys.add(next(_keys))
        if self._large:
            self._point_list = [*self._point_list[first:], point]
            self._row_list = [*self._row_list[first:], row]
            self._seen = self._seen[first:]
        else:
            self._points.add(point)
            self._matrix.add(row)

    @property
    def lines(self) -> Lines | None:
        """All of them as they are now; None where they are long, and do not lie in matrices."""
        if self._large:
            return None
        points, values, rows, keys = self._points, self._values, self._matrix, self._keys
        return Lines(points.kept, values.kept, rows.kept, keys.kept, (points.place, values.place, rows.place, keys.place))

    def errors(self, x: Vector, values: float | Vector) -> Vector:
        """How far each lies from the values at x, or `locality` times the squared distance if that is more."""
        lines = self.lines
        if lines is not None:
            return lines.errors(x, values)
        self._look(x)
        along, squares = np.array(self._seen).reshape(-1, 2).T
        return _error(values - self.values - along, squares)

    def excess(self, x: Vector, value: float) -> Vector:
        """By how much each lies above a value at x; negative where it lies below."""
        if self._large:
            self._look(x)
            along: Vector = np.array([product for product, _ in self._seen])
        else:
            along = np.einsum("ij,ij->i", self._matrix.kept, x - self._points.kept)
        excess: Vector = self.values + along - value
        return excess

    def select(self, chosen: NDArray[np.bool_]) -> None:
        """Keep only those that are chosen, in their order."""
        self._values.select(chosen)
        self._keys.select(chosen)
        if self._large:
            self._point_list = list(compress(self._point_list, chosen))
            self._row_list = list(compress(self._row_list, chosen))
            self._seen = list(compress(self._seen, chosen))
        else:
            self._points.select(chosen)
            self._matrix.select(chosen)

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

    def arrays(self) -> dict[str, Any]:
        """Points, values and rows, for saving."""
        points = np.array(self._point_list).reshape(-1, self._size) if self._large else self._points.kept
        rows = np.array(self._row_list).reshape(-1, self._size) if self._large else self._matrix.kept
        return {"points": points, "values": self.values, "rows": rows}

    def restore(self, points: Matrix, values: Vector, rows: Matrix) -> None:
        """Take over what `arrays` gave."""
        self.clear()
        for point, value, row in zip(points, values, rows, strict=True):
            self.add(np.array(point, dtype=np.float64), float(value), np.array(row, dtype=np.float64))
