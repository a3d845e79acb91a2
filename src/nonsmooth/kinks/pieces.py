"""Pieces of constraints: gradients of single constraints near which a kink was detected.

A constraint may be a maximum of several functions, or a norm. At one point only one gradient is available; the gradients of
the other pieces that meet there come from other points and are stored as separate rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.window import appended, last_entries
from nonsmooth.evaluate import Trial
from nonsmooth.kinks.linearizations import Linearizations, LinearizationTable

Vector = NDArray[np.float64]


class PieceRows:
    """Additional linearizations of constraints, signed so that a positive value is a violation: index, value at x, gradient."""

    def __init__(self, at: Trial, stored: Linearizations, index: NDArray[np.intp], signs: Vector, weights: Vector) -> None:
        self._at, self.index, self.signs, self.weights = at, index, signs, weights
        """The `weights` are the multipliers of an earlier step."""
        self.table: LinearizationTable | None = stored.table
        """The linearizations, if they are stored in matrices."""
        self.rows, self.keys = stored.rows, stored.keys
        if self.table is None:
            self.values = self._values(stored)

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def values(self) -> Vector:
        """The value of each at x, at most the constraint's own value."""
        assert self.table is not None
        return self._values(self.table)

    def _values(self, stored: Linearizations | LinearizationTable) -> Vector:
        here = self.signs * self._at.c[self.index]
        return here - stored.errors(self._at.x, here)


class ConstraintPieces:
    """Stored gradients of single constraints with detected kinks.

    An equality is signed by the side on which it is violated, so that a norm can be required to vanish.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self._linearizations = Linearizations(size, capacity)
        self._index = np.zeros(0, dtype=np.intp)
        self._signs = np.zeros(0)
        self._kinks = np.zeros(0, dtype=bool)
        self._negative = np.zeros(0, dtype=bool)
        self.weights = np.zeros(0)
        """The multiplier of each in the last step; only a warm start."""

    @property
    def capacity(self) -> int:
        """The largest number of entries."""
        return self._linearizations.capacity

    def __len__(self) -> int:
        return len(self._linearizations)

    @property
    def kinked_constraints(self) -> NDArray[np.intp]:
        """The constraints with a detected kink."""
        indices: NDArray[np.intp] = np.unique(self._index[self._kinks])
        return indices

    @property
    def never_negative(self) -> NDArray[np.intp]:
        """The equalities that were not negative at any recorded point."""
        return np.nonzero(~self._negative)[0]

    def notice(self, trial: Trial) -> None:
        """Record which equalities are negative at a point."""
        below = trial.c[: trial.equalities] < 0
        self._negative = self._negative | below if len(self._negative) else below

    def carry(self, rows: Vector) -> bool:
        """Whether pieces at kinks are active in a step with these multipliers of all pieces."""
        return len(rows) == len(self) > 0 and bool((rows[self._kinks] > 0).any())

    def add(self, trial: Trial, index: int, *, kinked: bool = False) -> None:
        """Store the gradient of one constraint at one point; `kinked` if no smooth constraint could have changed to it."""
        first = 1 if len(self) == self.capacity else 0
        self._kinks = appended(self._kinks[first:], kinked)
        sign = -1.0 if index < trial.equalities and trial.c[index] < 0 else 1.0
        self.weights = appended(self.weights[first:], 0.0)
        self._index = appended(self._index[first:], index)
        self._signs = appended(self._signs[first:], sign)
        # Multiplying copies the row, so that the Jacobian can be freed.
        self._linearizations.add(trial.x, sign * trial.c[index], sign * trial.jacobian[index])

    def clear(self) -> None:
        """Remove all entries."""
        self._linearizations.clear()
        self._index, self._signs, self.weights = self._index[:0], self._signs[:0], self.weights[:0]
        self._kinks = self._kinks[:0]

    def at(self, trial: Trial) -> PieceRows:
        """The linearizations for the model at a point, never above the constraint itself there."""
        return PieceRows(trial, self._linearizations, self._index, self._signs, self.weights)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        flags = {"kinks": self._kinks.astype(np.int8), "negative": self._negative.astype(np.int8)}
        return {"index": self._index, "signs": self._signs, "weights": self.weights, **flags, **self._linearizations.arrays()}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The shapes that `arrays` must have; raises ValueError for constraints that do not exist."""
        count = len(np.atleast_1d(arrays.get("values", np.zeros(0))))
        index = np.asarray(arrays.get("index", np.zeros(0, dtype=np.intp)))
        if index.dtype.kind != "i" or (index < 0).any() or (index >= constraints).any():
            raise ValueError(f"index must contain constraint indices from 0 to {constraints - 1}")
        negative = np.atleast_1d(arrays.get("negative", np.zeros(0)))
        expected: dict[str, tuple[int, ...]] = {"points": (count, variables), "rows": (count, variables)}
        expected |= dict.fromkeys(("index", "signs", "values", "weights", "kinks"), (count,))
        return {**expected, "negative": (min(len(negative), constraints),)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore from the result of `arrays`."""
        self._linearizations.restore(arrays["points"], arrays["values"], arrays["rows"])
        self._index = last_entries(len(self), arrays["index"], np.intp)
        self._kinks = last_entries(len(self), arrays["kinks"], np.bool_)
        self._negative = np.array(arrays["negative"], dtype=np.bool_)
        self._signs, self.weights = (last_entries(len(self), arrays[name], np.float64) for name in ("signs", "weights"))
