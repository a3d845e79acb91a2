"""Pieces of constraints: gradients of single constraints at points where they turned out to have a kink.

A constraint may be the largest of several functions, or a norm. At a point it shows one gradient; those of the other pieces
that meet there are known from other points only, and are kept as rows of their own.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.window import appended, last_entries
from nonsmooth.evaluate import Trial
from nonsmooth.kinks.linearizations import Linearizations, Lines

Vector = NDArray[np.float64]


class PieceRows:
    """Further linearizations of constraints, turned so that they are violated above 0: which one, value at x, gradient."""

    def __init__(self, at: Trial, kept: Linearizations, index: NDArray[np.intp], signs: Vector, weights: Vector) -> None:
        self._at, self.index, self.signs, self.weights = at, index, signs, weights
        """The weights are the multipliers of an earlier step."""
        self.lines: Lines | None = kept.lines
        """The linearizations themselves where they lie in matrices."""
        self.rows, self.keys = kept.rows, kept.keys
        if self.lines is None:
            self.values = self._values(kept)

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def values(self) -> Vector:
        """What each says about its constraint at x, never more than that is."""
        assert self.lines is not None
        return self._values(self.lines)

    def _values(self, kept: Linearizations | Lines) -> Vector:
        here = self.signs * self._at.c[self.index]
        return here - kept.errors(self._at.x, here)


class ConstraintPieces:
    """Gradients of single constraints at points where they turned out to have a kink.

    An equality counts on the side on which it is violated, so that the norm of something can be required to vanish.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self._kept = Linearizations(size, capacity)
        self._index = np.zeros(0, dtype=np.intp)
        self._signs = np.zeros(0)
        self._kinks = np.zeros(0, dtype=bool)
        self._negative = np.zeros(0, dtype=bool)
        self.weights = np.zeros(0)
        """The multiplier each had in the last step; only a hint."""

    @property
    def capacity(self) -> int:
        """How many are kept at most."""
        return self._kept.capacity

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def kinked(self) -> NDArray[np.intp]:
        """The constraints that have shown a kink."""
        found: NDArray[np.intp] = np.unique(self._index[self._kinks])
        return found

    @property
    def never_negative(self) -> NDArray[np.intp]:
        """The equalities that were not negative anywhere, as far as it was noticed."""
        return np.nonzero(~self._negative)[0]

    def notice(self, trial: Trial) -> None:
        """Remember which equalities are negative at a point."""
        below = trial.c[: trial.equalities] < 0
        self._negative = self._negative | below if len(self._negative) else below

    def carry(self, rows: Vector) -> bool:
        """Whether kinks are part of a step with these multipliers of all cuts."""
        return len(rows) == len(self) > 0 and bool((rows[self._kinks] > 0).any())

    def add(self, trial: Trial, index: int, *, kinked: bool = False) -> None:
        """Keep the gradient of one constraint at one point; `kinked` if it cannot have come there as that of a smooth one."""
        first = 1 if len(self) == self.capacity else 0
        self._kinks = appended(self._kinks[first:], kinked)
        sign = -1.0 if index < trial.equalities and trial.c[index] < 0 else 1.0
        self.weights = appended(self.weights[first:], 0.0)
        self._index = appended(self._index[first:], index)
        self._signs = appended(self._signs[first:], sign)
        self._kept.add(trial.x, sign * trial.c[index], sign * trial.jacobian[index])  # a copy: it need not hold the others

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()
        self._index, self._signs, self.weights = self._index[:0], self._signs[:0], self.weights[:0]
        self._kinks = self._kinks[:0]

    def at(self, trial: Trial) -> PieceRows:
        """The kept linearizations as seen from a point, never above the constraint itself there."""
        return PieceRows(trial, self._kept, self._index, self._signs, self.weights)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        flags = {"kinks": self._kinks.astype(np.int8), "negative": self._negative.astype(np.int8)}
        return {"index": self._index, "signs": self._signs, "weights": self.weights, **flags, **self._kept.arrays()}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """What `arrays` must look like; ValueError where they name constraints that do not exist."""
        count = len(np.atleast_1d(arrays.get("values", np.zeros(0))))
        index = np.asarray(arrays.get("index", np.zeros(0, dtype=np.intp)))
        if index.dtype.kind != "i" or (index < 0).any() or (index >= constraints).any():
            raise ValueError(f"index should be numbers of constraints, from 0 to {constraints - 1}")
        negative = np.atleast_1d(arrays.get("negative", np.zeros(0)))
        expected: dict[str, tuple[int, ...]] = {"points": (count, variables), "rows": (count, variables)}
        expected |= dict.fromkeys(("index", "signs", "values", "weights", "kinks"), (count,))
        return {**expected, "negative": (min(len(negative), constraints),)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self._kept.restore(arrays["points"], arrays["values"], arrays["rows"])
        self._index = last_entries(len(self), arrays["index"], np.intp)
        self._kinks = last_entries(len(self), arrays["kinks"], np.bool_)
        self._negative = np.array(arrays["negative"], dtype=np.bool_)
        self._signs, self.weights = (last_entries(len(self), arrays[name], np.float64) for name in ("signs", "weights"))
