"""Gradients kept from earlier points: cuts that show the solver kinks it cannot see from where it stands."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import LARGE, Rows, stack
from nonsmooth.arrays.window import appended, last_entries
from nonsmooth.evaluate import Trial
from nonsmooth.kinks.linearizations import Linearizations, Lines

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

_NONE = np.zeros(0, dtype=np.int64)


def default_capacity(size: int) -> int:
    """How many gradients to keep for n variables: as many as a kink can need, as few as time and memory allow.

    With the whole matrix, it has to be multiplied with each of them; above that size, n numbers have to be kept for each.

    >>> default_capacity(2), default_capacity(1000), default_capacity(10_000), default_capacity(1_000_000)
    (16, 40, 30, 10)
    """
    if size <= LARGE:
        return max(10, min(250, 3 * size + 10, 40_000_000 // size**2))
    return max(10, min(30, 1_200_000 // size))


class Cuts:
    """Linear functions below f near x: value −error at x, slopes one row each. The first is that of x itself.

    What they are at x is computed when it is asked for: compiled code has its own way.
    """

    def __init__(self, at: Trial, kept: Linearizations | None, weights: Vector) -> None:
        self._at, self.weights = at, weights
        """Weights of all but the first in an earlier step."""
        self.lines: Lines | None = None if kept is None else kept.lines
        """All but the first where they lie in matrices."""
        self.keys: Keys = _NONE if kept is None else kept.keys
        """A number for each slope but the first that no other gradient has."""
        self.count = 1 + len(self.keys)
        if kept is not None and self.lines is None:  # long ones are seen from one point at a time
            self.slopes, self.errors = stack(at.gradient[None], kept.rows), _with_own(kept.errors(at.x, at.f))

    @cached_property
    def slopes(self) -> Matrix | Rows:
        """Gradients of f, that of x itself first."""
        own = self._at.gradient[None]
        if self.lines is None:
            return own if own.shape[1] <= LARGE else stack(own)
        return stack(own, self.lines.rows)

    @cached_property
    def errors(self) -> Vector:
        """How far each lies below f at x."""
        return np.zeros(1) if self.lines is None else _with_own(self.lines.errors(self._at.x, self._at.f))


class VisibleCuts(Cuts):
    """Cuts that are read from the program at x itself."""

    def __init__(self, at: Trial, slopes: Matrix, errors: Vector, weights: Vector) -> None:
        super().__init__(at, None, weights)
        self.count = len(errors)
        self.slopes, self.errors = slopes, errors  # type: ignore[misc]


def _with_own(errors: Vector) -> Vector:
    found = np.empty(1 + len(errors))
    found[0], found[1:] = 0.0, errors
    return found


class Bundle:
    """A queue of (x, f, gradient of f); the oldest goes when it is full."""

    def __init__(self, size: int, capacity: int) -> None:
        self._kept = Linearizations(size, capacity)
        self.weights = np.zeros(0)
        """The weight each had in the last step; only a hint about which of them matter."""

    @property
    def capacity(self) -> int:
        """How many are kept at most."""
        return self._kept.capacity

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, trial: Trial, weight: float = 0.0) -> None:
        """Keep the gradient of f at one more point."""
        first = 1 if len(self) == self.capacity else 0
        self.weights = appended(self.weights[first:], weight)
        self._kept.add(trial.x, trial.f, trial.gradient)

    def drop_refuted(self, trial: Trial, tolerance: float) -> None:
        """Forget the points whose linearization lies above f at a new point, by more than a tolerance.

        f is not convex between them: there its gradient has changed, and with a kink beside it the old one says that f rises
        where it falls. Such cuts make models whose steps are short and promise next to nothing.
        """
        if len(self):
            below = self._kept.excess(trial.x, trial.f) <= tolerance
            if not below.all():
                self._kept.select(below)
                self.weights = self.weights[below]

    def clear(self) -> None:
        """Forget all points."""
        self._kept.clear()
        self.weights = self.weights[:0]

    def cuts(self, at: Trial) -> Cuts:
        """All cuts as seen from a point, that of the point itself first."""
        return Cuts(at, self._kept, self.weights)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        kept = self._kept.arrays()
        return {"points": kept["points"], "values": kept["values"], "slopes": kept["rows"], "weights": self.weights}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """What `arrays` must look like."""
        count = len(np.atleast_1d(arrays.get("values", np.zeros(0))))
        return {"points": (count, variables), "slopes": (count, variables), "values": (count,), "weights": (count,)}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self._kept.restore(arrays["points"], arrays["values"], arrays["slopes"])
        self.weights = last_entries(len(self), arrays["weights"], np.float64)


def own_cut(at: Trial) -> Cuts:
    """The cut of a point alone."""
    return Cuts(at, None, np.zeros(0))
