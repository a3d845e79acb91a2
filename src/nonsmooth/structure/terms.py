"""The kinks of a function at one point as numbers: what the local model is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ALONE = -1
"""The group of a term that is in none."""


@dataclass(frozen=True)
class Terms:
    """f ≈ smooth part + Σ κ(u), where κ has the slope `left` for u < 0 and `right` for u > 0.

    Terms of one group share one kink: the largest of them counts, or 0. Slopes are those of f, so that a term bends f upwards
    where `right` exceeds `left`.
    """

    values: Vector
    """u at the point."""
    left: Vector
    right: Vector
    taken: Vector
    """The slope that the gradient of autograd has at the point."""
    groups: NDArray[np.int64]
    places: NDArray[np.int64]
    """A number for each term that is the same at all points, also where another entry of a group is the largest."""
    largest: NDArray[np.int64]
    """The places of the largest entries of groups, which are no terms, by the numbers of the groups."""
    sources: NDArray[np.int64]
    """Which of the kinds that a reading lists a term is of."""
    differentiate: Callable[[], Matrix]
    """Computes the gradients of all u, one row each."""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def rows(self) -> Matrix:
        """The gradients of all u, one row each."""
        return self.differentiate()

    @property
    def convex(self) -> NDArray[np.bool_]:
        """Which terms bend f upwards."""
        return self.right >= self.left

    @property
    def shape(self) -> tuple[int, int]:
        """How many terms and groups there are."""
        return len(self.values), len(self.largest)

    def at_kink(self, tolerance: float) -> NDArray[np.bool_]:
        """Which terms are within a distance of their kink."""
        return np.abs(self.values) <= tolerance

    def sum(self, values: Vector) -> float:
        """Σ κ for other values of u."""
        parts = np.where(values > 0, self.right, self.left) * values
        grouped = self.groups != ALONE
        total = float(parts[~grouped].sum())
        if grouped.any():
            groups, places = np.unique(self.groups[grouped], return_inverse=True)
            largest = np.zeros(len(groups))
            # Groups of minima have negative slopes: the term that takes away most counts.
            part = (self.right[grouped] * np.maximum(values[grouped], 0.0), places)
            np.maximum.at(largest, part[1], part[0])
            smallest = np.zeros(len(groups))
            np.minimum.at(smallest, part[1], part[0])
            total += float((largest + smallest).sum())
        return total

    def change(self, along: Vector) -> float:
        """How Σ κ changes beyond what the gradient of autograd says, where the values change by `along`."""
        return self.sum(self.values + along) - self.sum(self.values) - float(self.taken @ along)

    def slope(self, along: Vector, tolerance: float = 0.0) -> float:
        """The same for the one-sided derivative in a direction in which the values change at the rates `along`."""
        near = self.at_kink(tolerance)
        return self.sum(np.where(near, along, 0.0)) - float(self.taken[near] @ along[near])
