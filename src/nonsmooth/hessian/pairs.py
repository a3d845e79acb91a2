"""Storage for L-BFGS pairs, with the products that L-BFGS needs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.products import Products

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Columns = NDArray[np.float64]


class Pairs(Protocol):
    """Steps s and gradient changes y in slots, filled from slot 0 up."""

    def put(self, slot: int, s: Vector, y: Vector) -> None:
        """Fill a slot: the next free one, or one that is in use."""

    def project(self, columns: Columns) -> tuple[Columns, Columns]:
        """Products of all steps and of all changes with a vector or columns, by slots."""

    def add(self, result: Columns, weights: Columns) -> Columns:
        """result + Σ weights·s + Σ weights·y in place, with the weights of the steps first."""

    def products(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Products of steps and changes with the rows (pairs × rows), and of the rows with each other."""

    def arrays(self) -> tuple[Matrix, Matrix]:
        """The steps and the changes, by slots."""

    def clear(self) -> None:
        """Remove all pairs."""


class HostPairs:
    """Pairs as rows of two matrices. Nothing else of size n is stored."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size
        self.steps: Matrix = np.zeros((0, size))
        self.changes: Matrix = np.zeros((0, size))
        self._products = Products(count)
        self._used_slots = 0

    @classmethod
    def of(cls, count: int, size: int, steps: Matrix, changes: Matrix) -> HostPairs:
        """Storage filled with existing pairs."""
        pairs = cls(count, size)
        for slot, (s, y) in enumerate(zip(steps, changes, strict=True)):
            pairs.put(slot, s, y)
        return pairs

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the pairs, but not the cached products, which are keyed by memory addresses."""
        return HostPairs.of, (self._count, self._size, *self.arrays())

    def put(self, slot: int, s: Vector, y: Vector) -> None:
        """Fill a slot: the next free one, or one that is in use."""
        if not len(self.steps):
            # All memory is allocated at once; the system provides it as it is written.
            self.steps, self.changes = np.empty((self._count, self._size)), np.empty((self._count, self._size))
        self.steps[slot], self.changes[slot] = s, y
        self._used_slots = max(self._used_slots, slot + 1)
        self._products.mark_changed(slot)

    def project(self, columns: Columns) -> tuple[Columns, Columns]:
        """Products of all steps and of all changes with a vector or columns, by slots."""
        return self.steps[: self._used_slots] @ columns, self.changes[: self._used_slots] @ columns

    def add(self, result: Columns, weights: Columns) -> Columns:
        """result + Σ weights·s + Σ weights·y, in place."""
        used = self._used_slots
        for rows, part in ((self.steps[:used], weights[:used]), (self.changes[:used], weights[used:])):
            if result.ndim == 1:
                result = np.asarray(blas.dgemv(1.0, rows.T, part, 1.0, result, overwrite_y=1))
            else:
                result = np.asarray(blas.dgemm(1.0, rows.T, part, 1.0, result, overwrite_c=1))
        return result

    def products(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Products of steps and changes with the rows, and of the rows with each other; known ones are reused."""
        return self._products.of(rows, self.steps[: self._used_slots], self.changes[: self._used_slots])

    def arrays(self) -> tuple[Matrix, Matrix]:
        """The steps and the changes, by slots."""
        return self.steps[: self._used_slots], self.changes[: self._used_slots]

    def clear(self) -> None:
        """Remove all pairs; their memory is reused."""
        self._used_slots = 0
        self._products.clear()
