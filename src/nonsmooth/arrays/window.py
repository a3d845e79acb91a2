"""The last few numbers or vectors of a sequence, in one block of memory."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import address


class Window:
    """The last few of a sequence of numbers or vectors, one behind the other in memory.

    Room is taken for more of them, so that adding one writes that one. What was handed out before never changes: when the
    room is used up, those that are left move to another place.

    >>> window = Window(np.empty((0, 2)), capacity=2)
    >>> for number in (1.0, 2.0, 3.0):
    ...     window.add(np.array([number, -number]))
    >>> window.kept
    array([[ 2., -2.],
           [ 3., -3.]])
    """

    __slots__ = ("_base", "_begin", "_capacity", "_end", "_room", "_size", "kept")

    def __init__(self, empty: NDArray[Any], capacity: int) -> None:
        self._capacity, self._room, self._begin, self._end = capacity, empty, 0, 0
        self.kept: NDArray[Any] = empty[:0]
        """Those that are left, oldest first; not to be written to."""
        self._base, self._size = 0, empty.itemsize * prod(empty.shape[1:])

    def add(self, item: Any) -> None:
        """Add one more; the oldest goes if there are too many."""
        if self._end == len(self._room):
            kept = self.kept
            self._room = np.empty((2 * min(len(kept) + 8, self._capacity + 1), *kept.shape[1:]), dtype=kept.dtype)
            self._room[: len(kept)] = kept
            self._begin, self._end = 0, len(kept)
            self._base = address(self._room)
        self._room[self._end] = item
        self._end += 1
        self._begin = max(self._begin, self._end - self._capacity)
        self.kept = self._room[self._begin : self._end]

    def select(self, chosen: NDArray[np.bool_]) -> None:
        """Keep only those that are chosen."""
        kept = self.kept[chosen]
        self._room = np.empty((len(kept) + 8, *kept.shape[1:]), dtype=kept.dtype)
        self._room[: len(kept)] = kept
        self._begin, self._end, self._base = 0, len(kept), address(self._room)
        self.kept = self._room[: self._end]

    @property
    def place(self) -> int:
        """Where `kept` lies."""
        return self._base + self._begin * self._size


def last_entries(count: int, vector: Any, kind: type[np.generic]) -> NDArray[Any]:
    """A copy of the last entries: there may be room for fewer than were saved."""
    return np.array(vector[len(vector) - count :], dtype=kind)


def appended(vector: NDArray[Any], number: float) -> NDArray[Any]:
    """As `np.append` for one number, which asks many questions first."""
    longer = np.empty(len(vector) + 1, dtype=vector.dtype)
    longer[:-1], longer[-1] = vector, number
    return longer
