"""Memory for long vectors that are kept for a while.

A function that is evaluated leaves many vectors behind that lived for a moment. A few among them that live on leave gaps
in the heap that nothing fits into, and the process grows to half as much again as it needs. Long vectors that the solver
keeps therefore lie apart, each in pages of its own. Some pages are used again, since getting them from the system takes
longer than filling them.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

LONG = 50_000
"""From so many numbers on a vector lies in pages of its own."""
_spare: deque[mmap.mmap] = deque(maxlen=2)
"""Pages of vectors that are gone."""


def new_vector(size: int) -> Vector:
    """A vector of unknown content.

    >>> new_vector(3).shape
    (3,)
    """
    if size < LONG:
        return np.empty(size)
    memory = _pages(8 * size)
    vector: Vector = np.frombuffer(memory, dtype=np.float64)
    # An array that is made from a buffer lives as long as any view of it: when it goes, nobody sees its memory any more.
    weakref.finalize(vector, _spare.append, memory).atexit = False
    return vector


def kept(vector: Vector) -> Vector:
    """A copy of a vector, for keeping.

    >>> kept(np.array([1.0, 2.0]))
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
