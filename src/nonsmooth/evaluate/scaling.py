"""The units in which the solver works: x = variables · z, f and each constraint multiplied by a factor.

They are chosen once, from values and gradients at the start, so that in the new units variables, slopes and curvatures are of
the order of 1. All factors are powers of two: a change of units then rounds nothing, and a problem in natural units is solved
exactly as it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.thresholds import THRESHOLDS

_ROUNDED = 1e-15
"""Slopes below this part of the largest of their function may be rounding errors."""

_SETTLED = 1e-6
"""Decades by which units no longer change."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """Factors: the user's x is `variables` times the solver's, the solver's f and c are the user's times the other two."""

    objective: float
    constraints: Vector
    variables: Vector | None = None
    """None where variables keep their units."""

    @property
    def is_identity(self) -> bool:
        """Whether nothing changes."""
        return self.objective == 1.0 and bool((self.constraints == 1.0).all()) and self.variables is None

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        found = {"objective": self.objective, "constraints": self.constraints}
        return found if self.variables is None else {**found, "variables": self.variables}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """What `arrays` must look like."""
        found: dict[str, tuple[int, ...]] = {"objective": (), "constraints": (constraints,)}
        return {**found, "variables": (variables,)} if "variables" in arrays else found

    @classmethod
    def restored(cls, arrays: dict[str, Any]) -> Scales:
        """The units that `arrays` gave."""
        variables = None if "variables" not in arrays else np.array(arrays["variables"], dtype=np.float64)
        return cls(float(arrays["objective"]), np.array(arrays["constraints"], dtype=np.float64), variables)


@dataclass(frozen=True)
class Reference:
    """The natural units of a problem, as its start shows them, and the start in them; verdicts are made in these units."""

    scales: Scales | None
    """None where the units of the user are natural."""
    start: Vector

    def refitted(self, steepness: Vector, f: float, jacobian: Matrix) -> Reference:
        """Units that make functions as steep along every variable, and f at the answer of the order of 1.

        All is told in the units of this reference.
        """
        known = steepness > _ROUNDED * steepness.max()
        decades, most = np.log10(np.where(known, steepness, 1.0)), THRESHOLDS.max_unit_decades
        change = _power_of_two(np.clip(np.where(known, np.median(decades[known]) - decades, 0.0), -most, most))
        size = max(abs(f), float((steepness * change).max()), THRESHOLDS.least_magnitude)
        objective = float(_power_of_two(np.array([-np.log10(min(size, 1.0))]))[0])
        lengths = np.linalg.norm(jacobian * change, axis=1)
        rows = _power_of_two(-_correction(np.log10(np.where(lengths > 0, lengths, 1.0))))
        own = self.scales or Scales(1.0, np.ones(len(jacobian)))
        variables = change if own.variables is None else own.variables * change
        return Reference(Scales(own.objective * objective, own.constraints * rows, variables), self.start / change)

    def length(self, x: Vector) -> float:
        """The size of the region that a run has seen; 1 where start and answer are the origin."""
        found = max(float(np.abs(x).max(initial=0.0)), float(np.abs(x - self.start).max(initial=0.0)))
        return found if found > 0 else 1.0

    def steepness(self, x: Vector) -> Vector:
        """How steep a function is along each variable if it changes by 1 over the way that the variable went."""
        return np.asarray(1.0 / np.maximum(1.0, np.maximum(np.abs(x), np.abs(x - self.start))))


def automatic_scales(x: Vector, gradient: Vector, jacobian: Matrix) -> Scales:
    """Units in which the start shows variables, and gradients of all functions, of the order of 1.

    >>> scales = automatic_scales(np.array([1e6, 1.0, 1.0]), np.array([1e-6, 1.0, 1.0]), np.zeros((0, 3)))
    >>> scales.objective, scales.variables
    (1.0, array([1.048576e+06, 1.000000e+00, 1.000000e+00]))
    """
    slopes, sizes = np.abs(np.vstack([gradient[None], jacobian])), np.abs(x)
    if not np.isfinite(slopes).all() or not slopes.any():
        return Scales(1.0, np.ones(len(jacobian)))
    units = _balanced(sizes, slopes)
    # A start may be near 0 in all variables: values that are small say nothing about their units.
    with np.errstate(divide="ignore"):
        overall = float(_correction(np.maximum(np.median(np.log10(sizes) - units), 0.0)))
    variables = _power_of_two(units + overall)
    lengths = np.linalg.norm(slopes * variables, axis=1)
    factors = _power_of_two(-_correction(np.log10(np.where(lengths > 0, lengths, 1.0))))
    return Scales(float(factors[0]), factors[1:], None if (variables == 1.0).all() else variables)


def _balanced(sizes: Vector, slopes: Matrix) -> Vector:
    """Units that make values and slopes about 1, with any factor for each row of slopes (Curtis and Reid 1972); in decades.

    Logarithms are averaged over rows and over columns in turn. A row with one variable says nothing about its unit.
    """
    known = slopes > _ROUNDED * slopes.max(axis=1, keepdims=True)
    known[np.count_nonzero(known, axis=1) < 2] = False
    logarithms = np.log10(np.where(known, slopes, 1.0))
    used, in_row, in_column = known.astype(np.float64), known.sum(axis=1), known.sum(axis=0)
    of_rows, of_columns = logarithms.sum(axis=1), logarithms.sum(axis=0)
    units = np.zeros(len(sizes))
    for _ in range(THRESHOLDS.balancing_rounds):
        before = units
        lengths = (of_rows + used @ units) / np.maximum(in_row, 1)
        steepness = (of_columns - lengths @ used) / np.maximum(in_column, 1)
        units = _correction(_units(sizes, np.where(in_column > 0, 10.0**steepness, 0.0)))
        if np.abs(units - before).max() <= _SETTLED:
            break
    return units


def _units(sizes: Vector, slopes: Vector) -> Vector:
    """The unit of each variable, in decades: the geometric mean of what its value and its slopes allow.

    It is at least the value, and at most what makes a change by one unit as large as the largest that the start shows for a
    change by the value. Where these are many decades apart, value or slope happens to be near 0; then the unit is that within
    them which is nearest to the units of the others.

    >>> _units(np.array([1e6, 1.0, 1e-9]), np.array([1e-6, 1.0, 1.0])).round(6)
    array([6., 0., 0.])
    """
    known = (sizes > 0) & (slopes > 0)
    if 2 * known.sum() < len(sizes):  # as where the start is 0
        return _units_by_slopes(slopes)
    with np.errstate(divide="ignore"):
        least, steepness = np.log10(sizes), np.log10(slopes)
    most = (least + steepness)[known].max() - steepness
    half = np.where(known, 0.5 * (most - least), np.inf)
    middle = np.where(known, 0.5 * (most + least), 0.0)
    # Values and slopes that are drawn from one distribution differ too; then all variables share a unit as far as they can.
    apart = 1.0 if _alike(middle[known]) else np.clip(0.5 * half / THRESHOLDS.natural_decades - 1.0, 0.0, 1.0)
    room = np.where(known, half * apart, 0.0)
    low, high = np.where(known, middle - room, least), np.where(known, middle + room, most)
    common = np.median(np.concatenate([low[known], high[known]]))  # nearest to all of these intervals
    return np.asarray(np.clip(common, low, high) - common)


def _units_by_slopes(slopes: Vector) -> Vector:
    """The unit of each variable, in decades, where values say nothing: one that gives all the same slope, if slopes differ."""
    known = slopes > 0
    decades = np.log10(np.where(known, slopes, 1.0))
    if 2 * known.sum() < len(slopes) or _alike(decades[known]):
        return np.zeros(len(slopes))
    return np.asarray(np.where(known, np.median(decades[known]) - decades, 0.0))


def _alike(decades: Vector) -> bool:
    """Whether numbers differ by no more than what is drawn from one distribution does: the middle half of them counts."""
    places = np.arange(len(decades))  # np.percentile takes five times as long
    lower, upper = np.interp((0.25 * places[-1], 0.75 * places[-1]), places, np.sort(decades))
    return bool(upper - lower < THRESHOLDS.natural_decades)


def _correction(decades: Vector) -> Vector:
    """What to correct where sizes are off the natural range by so many decades; within it, hardly anything."""
    most = THRESHOLDS.max_unit_decades
    return np.asarray(np.clip(decades**3 / (decades**2 + THRESHOLDS.natural_decades**2), -most, most))


def _power_of_two(decades: Vector) -> Vector:
    return np.asarray(2.0 ** np.round(decades * np.log2(10.0)))
