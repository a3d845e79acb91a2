"""Bounds on single variables, as a box that contains all points of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]

SNAP_DISTANCE = 4 * float(np.finfo(np.float64).eps)
"""A variable this close to a bound, relative to 1 or to its value, is set to the bound, to undo rounding in steps to it."""


@dataclass(frozen=True)
class Box:
    """lower ≤ x ≤ upper.

    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, 2.0]))
    >>> box.clipped(np.array([5.0, -7.0]))
    array([ 1., -7.])
    >>> box.longest_step(np.array([0.5, 0.0]), np.array([0.25, 0.5]))
    2.0
    """

    lower: Vector
    upper: Vector

    def clipped(self, x: Vector) -> Vector:
        """The nearest point of the box."""
        x = np.minimum(np.maximum(x, self.lower), self.upper)
        for bound in (self.lower, self.upper):
            near = np.abs(x - bound) <= SNAP_DISTANCE * np.maximum(1.0, np.abs(x))
            if near.any():
                x[near] = bound[near]
        return x

    def longest_step(self, x: Vector, direction: Vector) -> float:
        """The largest multiple of a direction that stays in the box from x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(
                direction > 0, (self.upper - x) / direction, np.where(direction < 0, (self.lower - x) / direction, np.inf)
            )
        return float(limits.min(initial=np.inf))

    def inward(self, x: Vector, direction: Vector) -> Vector:
        """The part of a step from x that stays in the box, by projection."""
        return self.clipped(x + direction) - x

    def projected_gradient(self, x: Vector, gradient: Vector) -> Vector:
        """A gradient without the components that active bounds at x balance."""
        fixed = ((x <= self.lower) & (gradient > 0)) | ((x >= self.upper) & (gradient < 0))
        return np.where(fixed, 0.0, gradient)

    def in_units(self, units: Vector | None) -> Box:
        """The same box, each variable divided by its unit."""
        return self if units is None else Box(self.lower / units, self.upper / units)

    @classmethod
    def of(cls, lower: Vector, upper: Vector, representable: Any) -> Box | None:
        """The box with these bounds as far as the variables can represent it; None if there are no bounds.

        `representable` rounds a point to the precision of the variables. A bound that is rounded outward moves inward again.
        """
        if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
            return None
        low, high = representable(lower), representable(upper)
        step = np.float32 if (low != lower).any() or (high != upper).any() else np.float64
        low = np.where(low < lower, np.nextafter(low.astype(step), step(np.inf)).astype(np.float64), low)
        high = np.where(high > upper, np.nextafter(high.astype(step), step(-np.inf)).astype(np.float64), high)
        return cls(np.minimum(low, high), high)
