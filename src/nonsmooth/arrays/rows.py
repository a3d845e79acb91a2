"""Gradients as rows: one matrix for small n, a list of vectors that are never copied together for large n."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from nonsmooth.arrays.memory import new_vector

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MAX_DENSE_VARIABLES = 2000
"""The number of variables up to which rows are copied into one matrix, which is faster."""
CHUNK_SIZE = 8192
"""Vectors are processed in chunks of this many entries: they stay in the cache, and are too short for OpenBLAS to use several
threads, which would make inner products depend on the number of threads."""


class Rows:
    """A matrix whose rows are stored in blocks: vectors, or matrices of several rows. Blocks are shared and read-only.

    >>> rows = Rows([np.array([1.0, 2.0]), np.eye(2)])
    >>> rows @ np.array([1.0, 10.0])
    array([21.,  1., 10.])
    >>> np.array([1.0, 0.0, 5.0]) @ rows
    array([1., 7.])
    """

    __array_ufunc__ = None  # makes `weights @ rows` call __rmatmul__ instead of creating an array of objects

    def __init__(self, blocks: Sequence[NDArray[np.float64]]) -> None:
        self.blocks = tuple(block[0] if block.ndim == 2 and len(block) == 1 else block for block in blocks if block.size)
        self._sizes = [1 if block.ndim == 1 else len(block) for block in self.blocks]
        self._count = sum(self._sizes)

    def __len__(self) -> int:
        return self._count

    @property
    def parts(self) -> list[slice]:
        """The rows that each block contains."""
        ends = np.cumsum(self._sizes).tolist()
        return [slice(end - size, end) for size, end in zip(self._sizes, ends, strict=True)]

    def __matmul__(self, vector: Vector) -> Vector:
        """The inner product of each row with a vector."""
        result = np.empty(self._count)
        for part, products in zip(self.parts, inner_products(self.blocks, (vector,)), strict=True):
            result[part] = products[0]
        return result

    def __rmatmul__(self, weights: Vector) -> Vector:
        """The weighted sum of the rows."""
        total = np.zeros(0)
        for part, block in zip(self.parts, self.blocks, strict=True):
            if block.ndim == 2 and weights[part].any():
                addend = np.matmul(weights[part], block, out=new_vector(block.shape[1]))
                total = addend if not len(total) else np.add(total, addend, out=total)
        if not len(total):
            total = new_vector(self.blocks[0].shape[-1])
            total[:] = 0.0
        chosen = [
            (float(weights[part.start]), block)
            for part, block in zip(self.parts, self.blocks, strict=True)
            if block.ndim == 1 and weights[part.start] != 0.0
        ]
        for start in range(0, len(total), CHUNK_SIZE):
            here = total[start : start + CHUNK_SIZE]
            for weight, vector in chosen:
                blas.daxpy(vector[start : start + CHUNK_SIZE], here, a=weight)  # in place
        return total

    def dense(self) -> Matrix:
        """All rows as one matrix."""
        return np.concatenate([np.atleast_2d(block) for block in self.blocks])


def stack(*parts: Matrix | Rows) -> Matrix | Rows:
    """The rows of all parts, stacked; copied into one matrix only for small n.

    >>> stack(np.ones((1, 2)), np.zeros((1, 2)))
    array([[1., 1.],
           [0., 0.]])
    """
    if all(isinstance(part, np.ndarray) and part.shape[1] <= MAX_DENSE_VARIABLES for part in parts):
        # Always in row-major order: rounding in BLAS depends on the memory layout.
        return np.ascontiguousarray(np.concatenate(parts))  # type: ignore[arg-type]
    return Rows([block for part in parts for block in (part.blocks if isinstance(part, Rows) else (part,))])


def inner_products(lefts: Sequence[NDArray[np.float64]], rights: Sequence[Vector]) -> list[list[NDArray[np.float64] | float]]:
    """For each block on the left, its inner product with each vector on the right.

    The product of two vectors does not depend on their order or on what else is computed, so it can be cached. The vectors
    are read once, chunk by chunk, because reading them dominates the time.
    """
    size = len(rights[0]) if len(rights) else 0
    vectors = [(i, left) for i, left in enumerate(lefts) if left.ndim == 1]
    sums = np.zeros((len(lefts), len(rights)))
    for start in range(0, size, CHUNK_SIZE):
        piece = slice(start, start + CHUNK_SIZE)
        others = [right[piece] for right in rights]
        for i, left in vectors:
            here = left[piece]
            sums[i] += [here.dot(other) for other in others]
    return [
        sums[i].tolist() if left.ndim == 1 else [left @ right for right in rights] for i, left in enumerate(lefts)
    ]  # fmt: skip


def triangular_factor(rows: Rows, last: Vector, lengths: Vector) -> Matrix:
    """R of a QR factorization of the rows as columns above a `last` row, all divided by `lengths`; computed chunk by chunk.

    >>> factor = triangular_factor(Rows([np.array([3.0, 0.0])]), np.array([4.0]), np.array([2.0]))
    >>> np.abs(factor)
    array([[2.5]])
    """
    factor = (last / lengths)[None]
    vectors = [vector for block in rows.blocks for vector in np.atleast_2d(block)]
    for start in range(0, len(vectors[0]), CHUNK_SIZE):
        piece = np.array([vector[start : start + CHUNK_SIZE] for vector in vectors]).T / lengths
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, piece]), mode="r"))
    return factor
