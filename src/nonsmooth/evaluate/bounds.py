"""Bounds on single variables, as constraints whose gradients need no differentiation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.errors import ProblemError
from nonsmooth.evaluate.bound_forms import lower_and_upper
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """lower ≤ x ≤ upper: variables with equal bounds become equalities, the others up to two inequalities."""

    size: int
    fixed: NDArray[np.intp]
    values: Vector
    above: NDArray[np.intp]
    upper: Vector
    below: NDArray[np.intp]
    lower: Vector

    @classmethod
    def of(cls, bounds: Any, variables: Variables) -> Bounds:
        """The bounds from any accepted form."""
        low, high = read_bounds(bounds, variables)
        fixed = np.nonzero(low == high)[0]
        above = np.nonzero((high < np.inf) & (low != high))[0]
        below = np.nonzero((low > -np.inf) & (low != high))[0]
        return cls(variables.size, fixed, low[fixed], above, high[above], below, low[below])

    @cached_property
    def any(self) -> bool:
        """Whether there is any bound."""
        return bool(len(self.fixed) or len(self.above) or len(self.below))

    def equalities(self, x: Vector) -> Vector:
        """x − value, for the fixed variables."""
        return x[self.fixed] - self.values

    def inequalities(self, x: Vector) -> Vector:
        """x − upper and lower − x, for variables with such bounds."""
        return np.concatenate([x[self.above] - self.upper, self.lower - x[self.below]])

    def equality_rows(self) -> NDArray[np.float64]:
        """Gradients of `equalities`."""
        return _unit_rows(self.fixed, 1.0, self.size)

    def inequality_rows(self) -> NDArray[np.float64]:
        """Gradients of `inequalities`."""
        return np.concatenate([_unit_rows(self.above, 1.0, self.size), _unit_rows(self.below, -1.0, self.size)])


def _unit_rows(indices: NDArray[np.intp], sign: float, size: int) -> NDArray[np.float64]:
    rows = np.zeros((len(indices), size))
    rows[np.arange(len(indices)), indices] = sign
    return rows


def read_bounds(bounds: Any, variables: Variables) -> tuple[Vector, Vector]:
    """The lower and the upper bound of every variable, from any accepted form."""
    lower, upper = (None, None) if bounds is None else lower_and_upper(bounds, variables)
    low = np.full(variables.size, -np.inf) if lower is None else variables.flatten(lower, what="the lower bound")
    high = np.full(variables.size, np.inf) if upper is None else variables.flatten(upper, what="the upper bound")
    if np.isnan(low).any() or np.isnan(high).any():
        raise ProblemError("a bound is NaN; use -inf, inf or None for a side without a bound")
    if (low > high).any():
        index = int(np.argmax(low > high))
        raise ProblemError(f"lower bound {low[index]} is above upper bound {high[index]} at position {index}")
    return low, high
