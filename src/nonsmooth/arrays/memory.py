"""Memory for long-lived long vectors.

Evaluating a function allocates many short-lived vectors. A few long-lived vectors among them fragment the heap, and the process
needs half as much memory again. The solver therefore stores its long vectors in separately mapped pages. Some pages are
reused, because obtaining pages from the system takes longer than filling them.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MIN_MMAP_ENTRIES = 50_000
"""The number of entries from which a vector gets its own pages."""
_spare: deque[mmap.mmap] = deque(maxlen=2)
"""Pages of vectors that were freed."""


def new_vector(size: int) -> Vector:
    """An uninitialized vector.

    >>> new_vector(3).shape
    (3,)
    """
    if size < MIN_MMAP_ENTRIES:
        return np.empty(size)
    memory = _pages(8 * size)
    vector: Vector = np.frombuffer(memory, dtype=np.float64)
    # An array made from a buffer lives as long as any view of it, so its memory is unused once it is finalized.
    weakref.finalize(vector, _spare.append, memory).atexit = False
    return vector


def long_lived_copy(vector: Vector) -> Vector:
    """A copy of a vector that is stored for long.

    >>> long_lived_copy(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    copy = new_vector(len(vector))
    copy[:] = vector
    return copy


def _pages(size: int) -> mmap.mmap:
    try:
        while True:
            memory = _spare.pop()
            if len(memory) == size:
                return memory
    except IndexError:
        memory = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memory
