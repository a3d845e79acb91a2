"""The kinks of a function at one point as arrays, from which the local model is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ALONE = -1
"""The group or ball number of a term that is in none."""
MAX_INTERIOR_FRACTION = 1.0 - 1e-9
"""Slopes shorter than this fraction of a ball's radius count as interior, so that the norm vanishes."""


@dataclass(frozen=True)
class Terms:
    """f ≈ smooth part + Σ κ(u), where κ has the slope `left` for u < 0 and `right` for u > 0.

    The terms of a group contribute their maximum, or 0 if all are negative. The terms of a ball are the entries of a vector
    and contribute its Euclidean norm times their `right`; their slopes lie in a ball of that radius. Slopes are those of f, so
    that a term is convex if `right` exceeds `left`.
    """

    values: Vector
    """u at the point."""
    left: Vector
    right: Vector
    autograd_slopes: Vector
    """The slopes that autograd uses at the point."""
    groups: NDArray[np.int64]
    places: NDArray[np.int64]
    """The index of each term in vectors of shares; it is the same at all points, whichever entry of a group is the largest."""
    largest: NDArray[np.int64]
    """For each group, the place of its largest entry, which is not a term."""
    sources: NDArray[np.int64]
    """The index of each term's operation in the reading's `kinds`."""
    balls: NDArray[np.int64]
    """The number of each term's ball, or `ALONE`."""
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
        """Which terms are convex."""
        return self.right >= self.left

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of terms and groups."""
        return len(self.values), len(self.largest)

    @cached_property
    def in_ball(self) -> NDArray[np.bool_]:
        """Which terms are in balls."""
        mask: NDArray[np.bool_] = self.balls != ALONE
        return mask

    def lengths(self, values: Vector) -> Vector:
        """The absolute value of each entry; for entries of balls, the Euclidean norm of the whole ball."""
        lengths, inside = np.abs(values), self.in_ball
        if inside.any():
            balls = self.balls[inside]
            # Relative to the largest entry of each ball, so that squares neither overflow nor underflow.
            largest = np.zeros(int(balls.max()) + 1)
            np.maximum.at(largest, balls, lengths[inside])
            units = np.where(largest > 0, largest, 1.0)[balls]
            lengths[inside] = np.sqrt(np.bincount(balls, (values[inside] / units) ** 2))[balls] * units
        return lengths

    def near(self, distance: float) -> NDArray[np.bool_]:
        """Which terms have their kink within a distance of the point, to first order."""
        mask: NDArray[np.bool_] = self.lengths(self.values) <= distance * self.lengths(np.linalg.norm(self.rows, axis=1))
        return mask

    def between_slopes(self, shares: Vector) -> NDArray[np.bool_]:
        """Which terms are on their kinks for given shares: their slope lies strictly between the left and right ones."""
        with np.errstate(invalid="ignore"):
            mask: NDArray[np.bool_] = (shares > 0.0) & (shares < 1.0)
            inside = self.in_ball
            if inside.any():
                mask[inside] = self.lengths(np.where(inside, 2.0 * shares - 1.0, 0.0))[inside] < MAX_INTERIOR_FRACTION
        return mask

    def at_kink(self, tolerance: float) -> NDArray[np.bool_]:
        """Which terms have |u| (for balls the norm) at most `tolerance`."""
        return self.lengths(self.values) <= tolerance

    def sum(self, values: Vector) -> float:
        """Σ κ for other values of u."""
        parts = np.where(values > 0, self.right, self.left) * values
        grouped, inside = self.groups != ALONE, self.in_ball
        if inside.any():
            _, first = np.unique(self.balls, return_index=True)
            parts[inside] = 0.0
            first = first[self.in_ball[first]]
            parts[first] = self.right[first] * self.lengths(values)[first]
        total = float(parts[~grouped].sum())
        if grouped.any():
            groups, places = np.unique(self.groups[grouped], return_inverse=True)
            largest = np.zeros(len(groups))
            # Groups of minima have negative slopes: the term that reduces the sum most counts.
            part = (self.right[grouped] * np.maximum(values[grouped], 0.0), places)
            np.maximum.at(largest, part[1], part[0])
            smallest = np.zeros(len(groups))
            np.minimum.at(smallest, part[1], part[0])
            total += float((largest + smallest).sum())
        return total

    def change(self, along: Vector) -> float:
        """The change of Σ κ in excess of autograd's linear prediction when the values change by `along`."""
        return self.sum(self.values + along) - self.sum(self.values) - float(self.autograd_slopes @ along)

    def slope(self, along: Vector, tolerance: float = 0.0) -> float:
        """Like `change`, for the one-sided derivative in a direction along which the values change at the rates `along`."""
        near = self.at_kink(tolerance)
        return self.sum(np.where(near, along, 0.0)) - float(self.autograd_slopes[near] @ along[near])
