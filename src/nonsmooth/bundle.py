"""Gradients kept from earlier points: cuts that show the solver kinks it cannot see from where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LOCALITY = 1e-3
"""A cut from a point at distance r counts as lying at least LOCALITY·r² too low, whatever its linearisation says."""


def default_capacity(size: int) -> int:
    """How many gradients to keep for n variables: as many as a kink can need, as few as memory allows.

    >>> default_capacity(2), default_capacity(1000), default_capacity(1_000_000)
    (14, 40, 10)
    """
    return max(10, min(200, 2 * size + 10, 40_000_000 // size**2, 2_000_000 // size))


@dataclass(frozen=True)
class Cuts:
    """Linear functions below f near x: value −error at x, slopes one row each. The first is that of x itself."""

    slopes: Matrix
    errors: Vector
    weights: Vector
    """Weights of all but the first in an earlier step."""


class Bundle:
    """A ring of (x, f, gradient of f); the oldest goes when it is full."""

    def __init__(self, size: int, capacity: int) -> None:
        self.capacity = capacity
        self._points = np.zeros((0, size))
        self._values = np.zeros(0)
        self._slopes = np.zeros((0, size))
        self.weights = np.zeros(0)
        """The weight each had in the last step; only a hint about which of them matter."""

    def __len__(self) -> int:
        return len(self._values)

    def add(self, trial: Trial, weight: float = 0.0) -> None:
        """Keep the gradient of f at one more point."""
        keep = slice(1 if len(self) == self.capacity else 0, None)
        self.weights = np.append(self.weights[keep], weight)
        self._points = np.concatenate([self._points[keep], trial.x[None]])
        self._values = np.append(self._values[keep], trial.f)
        self._slopes = np.concatenate([self._slopes[keep], trial.gradient[None]])

    def clear(self) -> None:
        """Forget all points."""
        keep = slice(0, 0)
        self._points, self._values, self._slopes = self._points[keep], self._values[keep], self._slopes[keep]
        self.weights = self.weights[keep]

    def cuts(self, at: Trial) -> Cuts:
        """All cuts as seen from a point, that of the point itself first."""
        offsets = at.x - self._points
        errors = at.f - self._values - np.einsum("ij,ij->i", self._slopes, offsets)
        locality = LOCALITY * np.einsum("ij,ij->i", offsets, offsets)
        return Cuts(
            np.concatenate([at.gradient[None], self._slopes]),
            np.concatenate([[0.0], np.maximum(np.abs(errors), locality)]),
            self.weights,
        )

    def nearby(self, x: Vector, radius: float) -> list[tuple[Vector, float, Vector]]:
        """(x, f, gradient of f) of the kept points within a distance of x."""
        offsets = x - self._points
        near = np.nonzero(np.einsum("ij,ij->i", offsets, offsets) <= radius * radius)[0]
        return [(self._points[i], float(self._values[i]), self._slopes[i]) for i in near]

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        return {"points": self._points, "values": self._values, "slopes": self._slopes, "weights": self.weights}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self._points, self._values, self._slopes = (np.array(arrays[name]) for name in ("points", "values", "slopes"))
        self.weights = np.array(arrays["weights"])


def own_cut(at: Trial) -> Cuts:
    """The cut of a point alone."""
    return Cuts(at.gradient[None], np.zeros(1), np.zeros(0))


@dataclass(frozen=True)
class ConstraintRows:
    """Further linearisations of constraints, turned so that they are violated above 0: which one, value at x, gradient."""

    index: NDArray[np.intp]
    signs: Vector
    values: Vector
    rows: Matrix
    weights: Vector
    """Multiplier of each in an earlier step."""


class ConstraintCuts:
    """Gradients of single constraints at points where they turned out to have a kink.

    An equality counts on the side on which it is violated, so that the norm of something can be required to vanish.
    """

    def __init__(self, size: int, capacity: int) -> None:
        self.capacity = capacity
        self._index = np.zeros(0, dtype=np.intp)
        self._signs = np.zeros(0)
        self._points = np.zeros((0, size))
        self._values = np.zeros(0)
        self._rows = np.zeros((0, size))
        self.weights = np.zeros(0)
        """The multiplier each had in the last step; only a hint."""

    def __len__(self) -> int:
        return len(self._values)

    def add(self, trial: Trial, index: int) -> None:
        """Keep the gradient of one constraint at one point."""
        keep = slice(1 if len(self) == self.capacity else 0, None)
        sign = -1.0 if index < trial.equalities and trial.c[index] < 0 else 1.0
        self.weights = np.append(self.weights[keep], 0.0)
        self._index = np.append(self._index[keep], index)
        self._signs = np.append(self._signs[keep], sign)
        self._points = np.concatenate([self._points[keep], trial.x[None]])
        self._values = np.append(self._values[keep], sign * trial.c[index])
        self._rows = np.concatenate([self._rows[keep], sign * trial.jacobian[index][None]])

    def clear(self) -> None:
        """Forget all of them."""
        keep = slice(0, 0)
        self.weights = self.weights[keep]
        self._index, self._signs, self._points, self._values, self._rows = (
            self._index[keep],
            self._signs[keep],
            self._points[keep],
            self._values[keep],
            self._rows[keep],
        )

    def at(self, trial: Trial) -> ConstraintRows:
        """The kept linearisations as seen from a point, never above the constraint itself there."""
        offsets = trial.x - self._points
        here = self._signs * trial.c[self._index]
        error = here - self._values - np.einsum("ij,ij->i", self._rows, offsets)
        locality = LOCALITY * np.einsum("ij,ij->i", offsets, offsets)
        return ConstraintRows(self._index, self._signs, here - np.maximum(np.abs(error), locality), self._rows, self.weights)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        return {
            "index": self._index, "signs": self._signs, "points": self._points, "values": self._values, "rows": self._rows,
            "weights": self.weights,
        }  # fmt: skip

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self._index = np.array(arrays["index"], dtype=np.intp)
        self._signs = np.array(arrays["signs"])
        self._points, self._values, self._rows = (np.array(arrays[name]) for name in ("points", "values", "rows"))
        self.weights = np.array(arrays["weights"])
