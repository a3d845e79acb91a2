"""The bundle: gradients from earlier points, stored as cuts that represent kinks near the current point."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import MAX_DENSE_VARIABLES, Rows, stack
from nonsmooth.arrays.window import appended, last_entries
from nonsmooth.evaluate import Trial
from nonsmooth.kinks.linearizations import Linearizations, LinearizationTable

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

_NONE = np.zeros(0, dtype=np.int64)


def default_capacity(size: int) -> int:
    """The number of gradients to store for n variables: as many as a kink can need, within limits of time and memory.

    A dense inverse Hessian is multiplied with each of them; with limited memory each takes n numbers of storage.

    >>> default_capacity(2), default_capacity(1000), default_capacity(10_000), default_capacity(1_000_000)
    (16, 40, 30, 10)
    """
    if size <= MAX_DENSE_VARIABLES:
        return max(10, min(250, 3 * size + 10, 40_000_000 // size**2))
    return max(10, min(30, 1_200_000 // size))


class Cuts:
    """Linear functions below f near x: value −error at x (relative to f), slopes as rows. The first is the cut of x itself.

    Slopes and errors are computed on first use, because compiled code computes its own.
    """

    def __init__(self, at: Trial, stored: Linearizations | None, weights: Vector) -> None:
        self._at, self.weights = at, weights
        """The weights of all cuts but the first in an earlier step."""
        self.table: LinearizationTable | None = None if stored is None else stored.table
        """All cuts but the first, if they are stored in matrices."""
        self.keys: Keys = _NONE if stored is None else stored.keys
        """A unique number for each slope but the first."""
        self.count = 1 + len(self.keys)
        if stored is not None and self.table is None:  # long vectors: computed for one point at a time
            self.slopes, self.errors = stack(at.gradient[None], stored.rows), _with_own(stored.errors(at.x, at.f))

    @cached_property
    def slopes(self) -> Matrix | Rows:
        """Gradients of f, starting with the one at x."""
        own = self._at.gradient[None]
        if self.table is None:
            return own if own.shape[1] <= MAX_DENSE_VARIABLES else stack(own)
        return stack(own, self.table.rows)

    @cached_property
    def errors(self) -> Vector:
        """The linearization error of each cut: how far it lies below f at x."""
        return np.zeros(1) if self.table is None else _with_own(self.table.errors(self._at.x, self._at.f))


class VisibleCuts(Cuts):
    """Cuts from the visible kinks at x."""

    def __init__(self, at: Trial, slopes: Matrix, errors: Vector, weights: Vector) -> None:
        super().__init__(at, None, weights)
        self.count = len(errors)
        self.slopes, self.errors = slopes, errors  # type: ignore[misc]


def _with_own(errors: Vector) -> Vector:
    padded = np.empty(1 + len(errors))
    padded[0], padded[1:] = 0.0, errors
    return padded


class Bundle:
    """A queue of (x, f, gradient of f); when it is full, the oldest entry is removed."""

    def __init__(self, size: int, capacity: int) -> None:
        self._linearizations = Linearizations(size, capacity)
        self.weights = np.zeros(0)
        """The weight of each cut in the last step; only a warm start."""

    @property
    def capacity(self) -> int:
        """The largest number of entries."""
        return self._linearizations.capacity

    def __len__(self) -> int:
        return len(self._linearizations)

    def add(self, trial: Trial, weight: float = 0.0) -> None:
        """Store the gradient of f at a point."""
        first = 1 if len(self) == self.capacity else 0
        self.weights = appended(self.weights[first:], weight)
        self._linearizations.add(trial.x, trial.f, trial.gradient)

    def drop_refuted(self, trial: Trial, tolerance: float) -> None:
        """Remove the cuts that lie above f at a new point by more than a tolerance.

        f is not convex between the points: such a cut can predict an increase of f where f decreases, and models with it
        have short steps with almost no predicted decrease.
        """
        if len(self):
            below = self._linearizations.excess(trial.x, trial.f) <= tolerance
            if not below.all():
                self._linearizations.select(below)
                self.weights = self.weights[below]

    def clear(self) -> None:
        """Remove all entries."""
        self._linearizations.clear()
        self.weights = self.weights[:0]

    def cuts(self, at: Trial) -> Cuts:
        """All cuts for the model at a point, starting with the cut of the point itself."""
        return Cuts(at, self._linearizations, self.weights)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        stored = self._linearizations.arrays()
        return {"points": stored["points"], "values": stored["values"], "slopes": stored["rows"], "weights": self.weights}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The shapes that `arrays` must have."""
        count = len(np.atleast_1d(arrays.get("values", np.zeros(0))))
        return {"points": (count, variables), "slopes": (count, variables), "values": (count,), "weights": (count,)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore from the result of `arrays`."""
        self._linearizations.restore(arrays["points"], arrays["values"], arrays["slopes"])
        self.weights = last_entries(len(self), arrays["weights"], np.float64)


def own_cut(at: Trial) -> Cuts:
    """The cut at a point itself, without stored cuts."""
    return Cuts(at, None, np.zeros(0))
