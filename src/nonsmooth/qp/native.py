"""The active-set method of the native library: small dense programs, without the interpreter between the steps of the method.

`active_set` does the same in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import Functions, address, linear_algebra
from nonsmooth.qp.program import Pull

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MOST = 600
"""Programs with more entries are better done with BLAS, by `active_set`."""


class Kernel:
    """The compiled method with memory of its own: one for each run, not for several threads at once."""

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
        pull: Pull | None = None,
    ) -> tuple[Vector, float] | None:
        """The answer found from a start, and its residual; None where the start cannot be made feasible."""
        size = len(linear)
        if size not in self._views:
            self._reserve(size)
        places = self._views[size]
        if self._matrix is not matrix:
            places[0][...] = matrix
        # Kept alive, so that no other matrix can be mistaken for it. Only the last one lies in the memory.
        self._matrix = matrix
        places[1][...] = linear
        places[2][...] = lower
        places[3][...] = upper
        y = places[4]
        y[...] = start
        products, square = (None, 0.0) if pull is None else (address(pull.products), pull.square)
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
