"""Where the pairs of a limited memory lie, and the products with them that it needs."""

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
    """Steps s and changes y in slots; those from 0 to the number in use are filled."""

    def put(self, slot: int, s: Vector, y: Vector) -> None:
        """Fill a slot, the next one or one that was filled before."""

    def project(self, columns: Columns) -> tuple[Columns, Columns]:
        """Products of all steps and of all changes with a vector or with columns, by slots."""

    def add(self, result: Columns, weights: Columns) -> Columns:
        """result + Σ weights·s + Σ weights·y, the weights of the steps first, in the place of the result."""

    def products(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Products of steps and changes with the rows (pairs × rows), and of the rows with each other."""

    def arrays(self) -> tuple[Matrix, Matrix]:
        """The steps and the changes, by slots."""

    def clear(self) -> None:
        """Forget all of them."""


class HostPairs:
    """Pairs as rows of two matrices. Besides them nothing of size n is kept."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size
        self.steps: Matrix = np.zeros((0, size))
        self.changes: Matrix = np.zeros((0, size))
        self._products = Products(count)
        self._used = 0

    @classmethod
    def of(cls, count: int, size: int, steps: Matrix, changes: Matrix) -> HostPairs:
        """Pairs that are known already."""
        pairs = cls(count, size)
        for slot, (s, y) in enumerate(zip(steps, changes, strict=True)):
            pairs.put(slot, s, y)
        return pairs

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the pairs, but not the products, which are remembered by where vectors lie in memory."""
        return HostPairs.of, (self._count, self._size, *self.arrays())

    def put(self, slot: int, s: Vector, y: Vector) -> None:
        """Fill a slot, the next one or one that was filled before."""
        if not len(self.steps):
            # All the memory is asked for at once; the system gives it when it is written to.
            self.steps, self.changes = np.empty((self._count, self._size)), np.empty((self._count, self._size))
        self.steps[slot], self.changes[slot] = s, y
        self._used = max(self._used, slot + 1)
        self._products.renew(slot)

    def project(self, columns: Columns) -> tuple[Columns, Columns]:
        """Products of all steps and of all changes with a vector or with columns, by slots."""
        return self.steps[: self._used] @ columns, self.changes[: self._used] @ columns

    def add(self, result: Columns, weights: Columns) -> Columns:
        """result + Σ weights·s + Σ weights·y, in the place of the result."""
        used = self._used
        for rows, part in ((self.steps[:used], weights[:used]), (self.changes[:used], weights[used:])):
            if result.ndim == 1:
                result = np.asarray(blas.dgemv(1.0, rows.T, part, 1.0, result, overwrite_y=1))
            else:
                result = np.asarray(blas.dgemm(1.0, rows.T, part, 1.0, result, overwrite_c=1))
        return result

    def products(self, rows: Rows) -> tuple[Matrix, Matrix, Matrix]:
        """Products of steps and changes with the rows, and of the rows with each other: only new ones are computed."""
        return self._products.of(rows, self.steps[: self._used], self.changes[: self._used])

    def arrays(self) -> tuple[Matrix, Matrix]:
        """The steps and the changes, by slots."""
        return self.steps[: self._used], self.changes[: self._used]

    def clear(self) -> None:
        """Forget all of them; their memory is used again."""
        self._used = 0
        self._products.clear()
