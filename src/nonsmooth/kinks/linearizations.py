"""Linearizations stored from earlier points, and their errors at other points."""

from __future__ import annotations

from itertools import compress, count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import CHUNK_SIZE, MAX_DENSE_VARIABLES, Rows
from nonsmooth.arrays.window import Window
from nonsmooth.native import address, load
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_keys = count(-1, -1)


class LinearizationTable(NamedTuple):
    """Linearizations in matrices: points, values there, gradients as rows, and a unique number for each. Never modified."""

    points: Matrix
    values: Vector
    rows: Matrix
    keys: NDArray[np.int64]
    addresses: tuple[int, int, int, int]
    """The addresses of the arrays, valid as long as these exist."""

    def errors(self, x: Vector, values: float | Vector) -> Vector:
        """The linearization error of each at x, or `locality` times the squared distance if that is larger."""
        functions = load()
        if functions is None:
            offsets = x - self.points
            along = np.einsum("ij,ij->i", self.rows, offsets)
            return _error(values - self.values - along, np.einsum("ij,ij->i", offsets, offsets))
        errors = np.empty(len(self.values))
        x = np.ascontiguousarray(x)
        one, many = (float(values), None) if np.ndim(values) == 0 else (0.0, np.ascontiguousarray(values, dtype=np.float64))
        many_address = None if many is None else address(many)
        functions.errors(
            address(self.points), address(self.rows), address(self.values), len(errors), self.rows.shape[1], address(x),
            many_address, one, THRESHOLDS.locality, address(errors),
        )  # fmt: skip
        return errors


def _error(differences: Vector, squares: Vector) -> Vector:
    error: Vector = np.maximum(np.abs(differences), THRESHOLDS.locality * squares)
    return error


class Linearizations:
    """A queue of (point, value, gradient); when it is full, the oldest entry is removed.

    Up to MAX_DENSE_VARIABLES variables the entries are stored in matrices. Above that, the vectors themselves are stored
    without copying, and their products are computed once for each evaluation point.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self.capacity, self._large, self._size = capacity, size > MAX_DENSE_VARIABLES, size
        self.clear()

    def __getstate__(self) -> dict[str, Any]:
        """Copies have other addresses and get their own keys."""
        return {"size": self._size, "capacity": self.capacity, **self.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.capacity, self._large, self._size = state["capacity"], state["size"] > MAX_DENSE_VARIABLES, state["size"]
        self.restore(state["points"], state["values"], state["rows"])

    def clear(self) -> None:
        """Remove all entries."""
        self._values = Window(np.zeros(0), self.capacity)
        self._keys = Window(np.zeros(0, dtype=np.int64), self.capacity)
        self._points = Window(np.zeros((0, self._size)), self.capacity)
        self._matrix = Window(np.zeros((0, self._size)), self.capacity)
        self._point_list: list[Vector] = []
        self._row_list: list[Vector] = []
        self._products: list[tuple[float, float]] = []
        self._products_point: Vector | None = None

    def __len__(self) -> int:
        return len(self._values.entries)

    @property
    def values(self) -> Vector:
        """The values, oldest first."""
        return self._values.entries

    @property
    def keys(self) -> NDArray[np.int64]:
        """A unique number for each."""
        return self._keys.entries

    @property
    def rows(self) -> Matrix | Rows:
        """The gradients, oldest first."""
        return Rows(self._row_list) if self._large else self._matrix.entries

    def add(self, point: Vector, value: float, row: Vector) -> None:
        """Store one more. The vectors are not copied and must not be modified afterwards."""
        first = 1 if len(self) == self.capacity else 0
        self._values.add(value)
        self._keys.add(next(_keys))
        if self._large:
            self._point_list = [*self._point_list[first:], point]
            self._row_list = [*self._row_list[first:], row]
            self._products = self._products[first:]
        else:
            self._points.add(point)
            self._matrix.add(row)

    @property
    def table(self) -> LinearizationTable | None:
        """All entries at present; None if the vectors are long and not stored in matrices."""
        if self._large:
            return None
        points, values, rows, keys = self._points, self._values, self._matrix, self._keys
        return LinearizationTable(
            points.entries,
            values.entries,
            rows.entries,
            keys.entries,
            (points.address, values.address, rows.address, keys.address),
        )

    def errors(self, x: Vector, values: float | Vector) -> Vector:
        """The linearization error of each at x, or `locality` times the squared distance if that is larger."""
        table = self.table
        if table is not None:
            return table.errors(x, values)
        self._compute_products(x)
        along, squares = np.array(self._products).reshape(-1, 2).T
        return _error(values - self.values - along, squares)

    def excess(self, x: Vector, value: float) -> Vector:
        """How far each lies above a value at x; negative if it lies below."""
        if self._large:
            self._compute_products(x)
            along: Vector = np.array([product for product, _ in self._products])
        else:
            along = np.einsum("ij,ij->i", self._matrix.entries, x - self._points.entries)
        excess: Vector = self.values + along - value
        return excess

    def select(self, chosen: NDArray[np.bool_]) -> None:
        """Keep only the chosen entries, in order."""
        self._values.select(chosen)
        self._keys.select(chosen)
        if self._large:
            self._point_list = list(compress(self._point_list, chosen))
            self._row_list = list(compress(self._row_list, chosen))
            self._products = list(compress(self._products, chosen))
        else:
            self._points.select(chosen)
            self._matrix.select(chosen)

    def _compute_products(self, x: Vector) -> None:
        """Compute the missing row·(x − point) and |x − point|² for long vectors."""
        if self._products_point is not x:
            self._products_point, self._products = x, []
        buffer = np.empty(min(CHUNK_SIZE, len(x)))
        for point, row in zip(self._point_list[len(self._products) :], self._row_list[len(self._products) :], strict=True):
            along = square = 0.0
            for start in range(0, len(x), CHUNK_SIZE):
                here = x[start : start + CHUNK_SIZE]
                offset = np.subtract(here, point[start : start + CHUNK_SIZE], out=buffer[: len(here)])
                along += float(row[start : start + CHUNK_SIZE].dot(offset))
                square += float(offset.dot(offset))
            self._products.append((along, square))

    def arrays(self) -> dict[str, Any]:
        """Points, values and rows, for saving."""
        points = np.array(self._point_list).reshape(-1, self._size) if self._large else self._points.entries
        rows = np.array(self._row_list).reshape(-1, self._size) if self._large else self._matrix.entries
        return {"points": points, "values": self.values, "rows": rows}

    def restore(self, points: Matrix, values: Vector, rows: Matrix) -> None:
        """Restore from the result of `arrays`."""
        self.clear()
        for point, value, row in zip(points, values, rows, strict=True):
            self.add(np.array(point, dtype=np.float64), float(value), np.array(row, dtype=np.float64))
