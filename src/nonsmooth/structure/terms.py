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
"""The group, or the ball, of a term that is in none."""
INSIDE = 1.0 - 1e-9
"""Slopes up to so many times the radius of a ball lie within it, where the norm vanishes."""


@dataclass(frozen=True)
class Terms:
    """f ≈ smooth part + Σ κ(u), where κ has the slope `left` for u < 0 and `right` for u > 0.

    Terms of one group share one kink: the largest of them counts, or 0. Those of one ball are the entries of a vector, the
    Euclidean norm of which counts, times their `right`: their slopes lie in a ball of that radius. Slopes are those of f, so
    that a term bends f upwards where `right` exceeds `left`.
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
    balls: NDArray[np.int64]
    """The number of the ball of each term, from 0 on, or `ALONE`."""
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

    @cached_property
    def round(self) -> NDArray[np.bool_]:
        """Which terms are in balls."""
        found: NDArray[np.bool_] = self.balls != ALONE
        return found

    def lengths(self, values: Vector) -> Vector:
        """The absolute value of each entry, and for those of balls the Euclidean norm of the whole ball."""
        found, inside = np.abs(values), self.round
        if inside.any():
            balls = self.balls[inside]
            # In units of the largest entry of each, the squares of which are neither too small nor too large for numbers.
            largest = np.zeros(int(balls.max()) + 1)
            np.maximum.at(largest, balls, found[inside])
            units = np.where(largest > 0, largest, 1.0)[balls]
            found[inside] = np.sqrt(np.bincount(balls, (values[inside] / units) ** 2))[balls] * units
        return found

    def near(self, distance: float) -> NDArray[np.bool_]:
        """Which terms have their kink within a distance of the point, to first order."""
        found: NDArray[np.bool_] = self.lengths(self.values) <= distance * self.lengths(np.linalg.norm(self.rows, axis=1))
        return found

    def held(self, shares: Vector) -> NDArray[np.bool_]:
        """Which terms a choice of shares, one for each term, holds on their kinks."""
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = (shares > 0.0) & (shares < 1.0)
            inside = self.round
            if inside.any():
                found[inside] = self.lengths(np.where(inside, 2.0 * shares - 1.0, 0.0))[inside] < INSIDE
        return found

    def at_kink(self, tolerance: float) -> NDArray[np.bool_]:
        """Which terms are within a distance of their kink."""
        return self.lengths(self.values) <= tolerance

    def sum(self, values: Vector) -> float:
        """Σ κ for other values of u."""
        parts = np.where(values > 0, self.right, self.left) * values
        grouped, inside = self.groups != ALONE, self.round
        if inside.any():
            _, first = np.unique(self.balls, return_index=True)
            parts[inside] = 0.0
            first = first[self.round[first]]
            parts[first] = self.right[first] * self.lengths(values)[first]
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
