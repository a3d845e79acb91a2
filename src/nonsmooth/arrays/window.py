"""The last few numbers or vectors of a sequence, in contiguous memory."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import address


class Window:
    """The last few entries of a sequence of numbers or vectors, contiguous in memory.

    Spare room is allocated, so that adding an entry writes only that entry. Views that were returned before never change:
    when the room is used up, the remaining entries are copied to new memory.

    >>> window = Window(np.empty((0, 2)), capacity=2)
    >>> for number in (1.0, 2.0, 3.0):
    ...     window.add(np.array([number, -number]))
    >>> window.entries
    array([[ 2., -2.],
           [ 3., -3.]])
    """

    __slots__ = ("_base", "_begin", "_capacity", "_end", "_room", "_size", "entries")

    def __init__(self, empty: NDArray[Any], capacity: int) -> None:
        self._capacity, self._room, self._begin, self._end = capacity, empty, 0, 0
        self.entries: NDArray[Any] = empty[:0]
        """The remaining entries, oldest first; read-only."""
        self._base, self._size = 0, empty.itemsize * prod(empty.shape[1:])

    def add(self, item: Any) -> None:
        """Add an entry; remove the oldest one if there are too many."""
        if self._end == len(self._room):
            entries = self.entries
            self._room = np.empty((2 * min(len(entries) + 8, self._capacity + 1), *entries.shape[1:]), dtype=entries.dtype)
            self._room[: len(entries)] = entries
            self._begin, self._end = 0, len(entries)
            self._base = address(self._room)
        self._room[self._end] = item
        self._end += 1
        self._begin = max(self._begin, self._end - self._capacity)
        self.entries = self._room[self._begin : self._end]

    def select(self, chosen: NDArray[np.bool_]) -> None:
        """Keep only the chosen entries."""
        entries = self.entries[chosen]
        self._room = np.empty((len(entries) + 8, *entries.shape[1:]), dtype=entries.dtype)
        self._room[: len(entries)] = entries
        self._begin, self._end, self._base = 0, len(entries), address(self._room)
        self.entries = self._room[: self._end]

    @property
    def address(self) -> int:
        """The address of `entries`."""
        return self._base + self._begin * self._size


def last_entries(count: int, vector: Any, kind: type[np.generic]) -> NDArray[Any]:
    """A copy of the last entries; fewer may fit than were saved."""
    return np.array(vector[len(vector) - count :], dtype=kind)


def appended(vector: NDArray[Any], number: float) -> NDArray[Any]:
    """Like `np.append` for one number, but faster."""
    longer = np.empty(len(vector) + 1, dtype=vector.dtype)
    longer[:-1], longer[-1] = vector, number
    return longer
