"""The units in which the solver works: x = variables · z, f and each constraint multiplied by a factor.

They are chosen once, from values and gradients at the start, so that variables, slopes and curvatures are of the order of 1 in
the new units. All factors are powers of two: a change of units then causes no rounding, and a problem in natural units is
solved exactly as given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.thresholds import THRESHOLDS

_RELATIVE_ROUNDING = 1e-15
"""Slopes below this fraction of the largest slope of their function may be rounding errors."""

_CONVERGED_DECADES = 1e-6
"""Balancing stops when the units change by no more than this."""

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scales:
    """Factors: the user's x is `variables` times the solver's; the solver's f and c are the user's times the other two."""

    objective: float
    constraints: Vector
    variables: Vector | None = None
    """None if the variables keep their units."""

    @property
    def is_identity(self) -> bool:
        """Whether nothing changes."""
        return self.objective == 1.0 and bool((self.constraints == 1.0).all()) and self.variables is None

    def arrays(self) -> dict[str, Any]:
        """All arrays that `restored` needs."""
        factors = {"objective": self.objective, "constraints": self.constraints}
        return factors if self.variables is None else {**factors, "variables": self.variables}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The expected shapes of `arrays`."""
        shapes: dict[str, tuple[int, ...]] = {"objective": (), "constraints": (constraints,)}
        return {**shapes, "variables": (variables,)} if "variables" in arrays else shapes

    @classmethod
    def restored(cls, arrays: dict[str, Any]) -> Scales:
        """The units from `arrays`."""
        variables = None if "variables" not in arrays else np.array(arrays["variables"], dtype=np.float64)
        return cls(float(arrays["objective"]), np.array(arrays["constraints"], dtype=np.float64), variables)


@dataclass(frozen=True)
class Reference:
    """The natural units of a problem, derived from its start, and the start in them. Certificates use these units."""

    scales: Scales | None
    """None if the user's units are natural."""
    start: Vector

    def refit(self, steepness: Vector, f: float, jacobian: Matrix) -> Reference:
        """Units in which functions are equally steep along every variable, and f at the answer is of the order of 1.

        All arguments are in the units of this reference.
        """
        significant = steepness > _RELATIVE_ROUNDING * steepness.max()
        decades, limit = np.log10(np.where(significant, steepness, 1.0)), THRESHOLDS.max_unit_decades
        middle = np.median(decades[significant])
        change = _power_of_two(np.clip(np.where(significant, middle - decades, 0.0), -limit, limit))
        size = max(abs(f), float((steepness * change).max()), THRESHOLDS.least_magnitude)
        objective = float(_power_of_two(np.array([-np.log10(min(size, 1.0))]))[0])
        lengths = np.linalg.norm(jacobian * change, axis=1)
        rows = _power_of_two(-_correction(np.log10(np.where(lengths > 0, lengths, 1.0))))
        own = self.scales or Scales(1.0, np.ones(len(jacobian)))
        variables = change if own.variables is None else own.variables * change
        return Reference(Scales(own.objective * objective, own.constraints * rows, variables), self.start / change)

    def length(self, x: Vector) -> float:
        """The size of the region that a run has covered; 1 if start and answer are the origin."""
        size = max(float(np.abs(x).max(initial=0.0)), float(np.abs(x - self.start).max(initial=0.0)))
        return size if size > 0 else 1.0

    def steepness(self, x: Vector) -> Vector:
        """The slope along each variable of a function that changes by 1 over the distance from the start or the origin to x."""
        return np.asarray(1.0 / np.maximum(1.0, np.maximum(np.abs(x), np.abs(x - self.start))))


def automatic_scales(x: Vector, gradient: Vector, jacobian: Matrix) -> Scales:
    """Units in which the variables, and the gradients of all functions, are of the order of 1 at the start.

    >>> scales = automatic_scales(np.array([1e6, 1.0, 1.0]), np.array([1e-6, 1.0, 1.0]), np.zeros((0, 3)))
    >>> scales.objective, scales.variables
    (1.0, array([1.048576e+06, 1.000000e+00, 1.000000e+00]))
    """
    slopes, sizes = np.abs(np.vstack([gradient[None], jacobian])), np.abs(x)
    if not np.isfinite(slopes).all() or not slopes.any():
        return Scales(1.0, np.ones(len(jacobian)))
    units = _balanced(sizes, slopes)
    # A start may be near 0 in all variables: small values say nothing about their units.
    with np.errstate(divide="ignore"):
        overall = float(_correction(np.maximum(np.median(np.log10(sizes) - units), 0.0)))
    variables = _power_of_two(units + overall)
    lengths = np.linalg.norm(slopes * variables, axis=1)
    factors = _power_of_two(-_correction(np.log10(np.where(lengths > 0, lengths, 1.0))))
    return Scales(float(factors[0]), factors[1:], None if (variables == 1.0).all() else variables)


def _balanced(sizes: Vector, slopes: Matrix) -> Vector:
    """Units that make values and slopes about 1, with any factor for each row of slopes (Curtis and Reid 1972); in decades.

    Logarithms are averaged over rows and columns alternately. A row with a single variable says nothing about its unit.
    """
    significant = slopes > _RELATIVE_ROUNDING * slopes.max(axis=1, keepdims=True)
    significant[np.count_nonzero(significant, axis=1) < 2] = False
    logarithms = np.log10(np.where(significant, slopes, 1.0))
    mask, in_row, in_column = significant.astype(np.float64), significant.sum(axis=1), significant.sum(axis=0)
    of_rows, of_columns = logarithms.sum(axis=1), logarithms.sum(axis=0)
    units = np.zeros(len(sizes))
    for _ in range(THRESHOLDS.balancing_rounds):
        before = units
        lengths = (of_rows + mask @ units) / np.maximum(in_row, 1)
        steepness = (of_columns - lengths @ mask) / np.maximum(in_column, 1)
        units = _correction(_units(sizes, np.where(in_column > 0, 10.0**steepness, 0.0)))
        if np.abs(units - before).max() <= _CONVERGED_DECADES:
            break
    return units


def _units(sizes: Vector, slopes: Vector) -> Vector:
    """The unit of each variable, in decades: the geometric mean of a lower and an upper limit.

    The lower limit is the variable's value. At the upper limit, a change by one unit changes a function as much as the largest
    change at the start that a change by a variable's value causes. If the limits are many decades apart, the value or the slope
    happens to be near 0; the unit is then the point between the limits that is closest to the units of the others.

    >>> _units(np.array([1e6, 1.0, 1e-9]), np.array([1e-6, 1.0, 1.0])).round(6)
    array([6., 0., 0.])
    """
    usable = (sizes > 0) & (slopes > 0)
    if 2 * usable.sum() < len(sizes):  # for instance if the start is 0
        return _units_by_slopes(slopes)
    with np.errstate(divide="ignore"):
        lower, steepness = np.log10(sizes), np.log10(slopes)
    upper = (lower + steepness)[usable].max() - steepness
    half = np.where(usable, 0.5 * (upper - lower), np.inf)
    middle = np.where(usable, 0.5 * (upper + lower), 0.0)
    # Values and slopes drawn from one distribution differ too; in this case all variables share a unit as far as possible.
    freedom = 1.0 if _similar(middle[usable]) else np.clip(0.5 * half / THRESHOLDS.natural_decades - 1.0, 0.0, 1.0)
    margin = np.where(usable, half * freedom, 0.0)
    low, high = np.where(usable, middle - margin, lower), np.where(usable, middle + margin, upper)
    common = np.median(np.concatenate([low[usable], high[usable]]))  # closest to all of these intervals
    return np.asarray(np.clip(common, low, high) - common)


def _units_by_slopes(slopes: Vector) -> Vector:
    """The unit of each variable, in decades, if values say nothing: it equalizes the slopes if they differ."""
    usable = slopes > 0
    decades = np.log10(np.where(usable, slopes, 1.0))
    if 2 * usable.sum() < len(slopes) or _similar(decades[usable]):
        return np.zeros(len(slopes))
    return np.asarray(np.where(usable, np.median(decades[usable]) - decades, 0.0))


def _similar(decades: Vector) -> bool:
    """Whether numbers differ by no more than samples of one distribution do, judged by the interquartile range."""
    places = np.arange(len(decades))  # np.percentile takes five times as long
    lower, upper = np.interp((0.25 * places[-1], 0.75 * places[-1]), places, np.sort(decades))
    return bool(upper - lower < THRESHOLDS.natural_decades)


def _correction(decades: Vector) -> Vector:
    """The correction, in decades, for sizes that are off by `decades`; it is close to 0 within the natural range."""
    limit = THRESHOLDS.max_unit_decades
    return np.asarray(np.clip(decades**3 / (decades**2 + THRESHOLDS.natural_decades**2), -limit, limit))


def _power_of_two(decades: Vector) -> Vector:
    return np.asarray(2.0 ** np.round(decades * np.log2(10.0)))
