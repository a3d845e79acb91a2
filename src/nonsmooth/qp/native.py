"""The native library's active-set method for small dense programs, without interpreter overhead.

`active_set` is the same method in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import Functions, address, linear_algebra
from nonsmooth.qp.program import FixedRow

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MAX_NATIVE_ENTRIES = 600
"""Larger programs are solved faster with BLAS, by `active_set`."""


class Kernel:
    """The compiled method with its own memory: one per run, not thread-safe."""

    def __init__(self, functions: Functions) -> None:
        self.functions, self._solve = functions, functions.solve
        libraries = linear_algebra()
        self.factorize = None if libraries is None else libraries[0]
        self._memory: Vector = np.empty(0)
        self._room = 0
        self._matrix: Matrix | None = None
        self._views: dict[int, tuple[Any, ...]] = {}

    def solve(
        self,
        matrix: Matrix,
        linear: Vector,
        lower: Vector,
        upper: Vector,
        simplex: int,
        start: Vector,
        rounds: int,
        fixed_row: FixedRow | None = None,
    ) -> tuple[Vector, float] | None:
        """The solution computed from a start, and its residual; None if the start cannot be made feasible."""
        size = len(linear)
        if size not in self._views:
            self._reserve(size)
        views = self._views[size]
        if self._matrix is not matrix:
            views[0][...] = matrix
        # The reference keeps the last matrix alive, so that no other matrix can be mistaken for it.
        self._matrix = matrix
        views[1][...] = linear
        views[2][...] = lower
        views[3][...] = upper
        y = views[4]
        y[...] = start
        products, square = (None, 0.0) if fixed_row is None else (address(fixed_row.products), fixed_row.square)
        residual = self._solve(self._address, size, simplex, rounds, 1e-9, self.factorize, products, square)
        return None if residual < 0 else (y.copy(), residual)

    def _enlarge(self, needed: int) -> None:
        if needed > self._room:
            self._room = max(needed, 2 * self._room)
            self._memory, self._views, self._matrix = np.empty(self._room), {}, None
            self._address = self._memory.ctypes.data

    def _reserve(self, size: int) -> None:
        self._enlarge(2 * size * size + 21 * size)
        square = size * size
        vectors = tuple(self._memory[square + size * i : square + size * (i + 1)] for i in range(4))
        self._views[size] = (self._memory[:square].reshape(size, size), *vectors)
