"""The gradients that the check gathers, and the combination of them that comes closest to proving a point stationary.

The shortest combination is a nonnegative least-squares problem. The simplex constraint is handled exactly by requiring
Σ w_k = 1 in the least-squares sense and rescaling, because the residual is homogeneous in all multipliers together. The ν_j
are free in sign: they remove the span of their gradients, which is done first, by a projection.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import MAX_DENSE_VARIABLES, Rows, stack, triangular_factor
from nonsmooth.arrays.window import Window
from nonsmooth.certify.nnls import nnls
from nonsmooth.certify.span import MIN_INDEPENDENT_PART, Span
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MIN_KINK_CHANGE = 0.01
"""Relative change above which a constraint's gradient counts as changed by a kink, not by curvature."""
MIN_ASPECT_RATIO_FOR_QR = 16
"""A system with more than this many times as many rows as columns is reduced by a QR factorization first."""


@dataclass(frozen=True)
class _Gradient:
    """A gradient of f (constraint −1) or of a constraint, at x or at a distance from it."""

    constraint: int
    sign: float
    row: Vector
    error: float
    """The error of its linearization at x."""
    distance: float
    point: Vector | None
    """The point at which it was computed; None for x itself."""
    orthogonal_part: Vector
    """The component of the row orthogonal to the gradients of the equalities."""

    @cached_property
    def length(self) -> float:
        """Length of the row, cached because it is needed often."""
        return float(np.linalg.norm(self.row))

    def negated(self) -> _Gradient:
        """The same gradient with the opposite sign."""
        return replace(self, sign=-self.sign, row=-self.row, orthogonal_part=-self.orthogonal_part)


class _NearBounds:
    """Variables at or near bounds, and which of them are fixed at these bounds."""

    def __init__(self, x: Vector, box: Box, reach: float) -> None:
        below, above = x - box.lower, box.upper - x
        self._lower, self._upper = below <= reach, above <= reach
        self.near = self._lower | self._upper
        self.fixed = np.zeros(len(x), dtype=bool)
        self.distance = np.where(self.near, np.minimum(below, above), 0.0)

    def inward(self, gradient: Vector) -> NDArray[np.bool_]:
        """Variables along which the negative gradient points into the box."""
        return (self._lower & ~self._upper & (gradient < 0)) | (self._upper & ~self._lower & (gradient > 0))


class Combination:
    """Gradients gathered so far, and the combination of them that comes closest to proving x stationary."""

    def __init__(self, at: Trial, radius: float, tolerances: Tolerances, slopes: Vector, box: Box | None = None) -> None:
        self._slopes = slopes
        self._near_bounds = None if box is None else _NearBounds(at.x, box, 2.0 * radius)
        self.bound_multipliers: Vector | None = None if box is None else np.zeros(len(at.x))
        """Positive for lower bounds, negative for upper ones."""
        self._at = at
        self._lengths = np.linalg.norm(at.jacobian, axis=1)
        reach = 2.0 * radius * self._lengths + tolerances.inequality
        equalities = at.equalities
        self._near = [i for i in range(equalities, len(at.c)) if at.c[i] >= -reach[i]]
        self._relevant = np.array([*range(equalities), *self._near], dtype=np.intp)
        self._dependent = max(MIN_INDEPENDENT_PART, 1e3 * tolerances.noise)
        self._excluded_equalities: set[int] = set()
        """Equalities whose gradients at x are not used."""
        self._span = self._new_span()
        self._gradients: list[_Gradient] = []
        self._orthogonal_parts = Window(np.empty((0, len(at.x))), sys.maxsize)
        """The components of the gradients orthogonal to those of the equalities, up to MAX_DENSE_VARIABLES variables."""
        self.longest = 0.0
        """Length of the longest gradient of f."""
        self.samples = 0
        """The number of gradients of f."""
        self._discarded_functions: set[int] = set()
        """Functions whose gradients at x were discarded; −1 for the objective."""
        self._append(-1, 1.0, at.gradient)
        for i in self._near:
            self._append(i, 1.0, at.jacobian[i])
        self.multipliers = np.zeros(len(at.c))
        self.vector = at.gradient
        self._largest_component = inf
        self.gap = 0.0
        self.turn = 0.0
        """How far curved constraints may have moved the combination, estimated from the errors of their gradients; relative."""
        self.bound_complementarity = 0.0
        """The largest product of a multiplier of a bound and the distance from the bound."""
        self._unprojected = at.gradient
        """The combination before the components at bounds are removed."""
        self.longest_part = 0.0
        """Length of the longest contribution of one constraint: if it is much longer than the sum, contributions cancel."""
        self.sign_conflict = 0.0
        """For the worst equality, the length of its contribution with the sign that contributes less."""
        self._conflicts, self._mostly_positive = np.zeros(len(at.c)), np.ones(len(at.c), dtype=bool)
        """The same for each constraint, and which contribute at least as much with a positive sign."""
        self.support: tuple[Vector, ...] = ()
        """Points whose gradients have positive weight."""
        self.kinks: Matrix = np.zeros((0, len(at.x)))
        """Differences of combined gradients of one function: directions across the kinks near x."""

    @property
    def residual(self) -> float:
        """The relative size of the combination, as a whole and by component; infinite if it cannot be computed.

        As a whole it is relative to 1 + the longest gradient of f. That alone would hide a component along a variable whose
        slopes are much smaller than those of others. So each component is also compared with a typical slope along its
        variable plus the sum of the terms that cancel in it.
        """
        size = max(float(np.linalg.norm(self.vector)) / (1.0 + self.longest), self._largest_component)
        return size if self.samples and isfinite(size) and isfinite(self.longest) else inf

    def _append(
        self, constraint: int, sign: float, row: Vector, error: float = 0.0, distance: float = 0.0, point: Vector | None = None
    ) -> None:
        self._store(_Gradient(constraint, sign, row, error, distance, point, self._orthogonal_part(row, constraint)))

    def _store(self, gradient: _Gradient) -> None:
        self._gradients.append(gradient)
        if gradient.constraint < 0:
            self.samples += 1
            self.longest = max(self.longest, gradient.length)
        if len(gradient.row) <= MAX_DENSE_VARIABLES:
            self._orthogonal_parts.add(gradient.orthogonal_part)

    def _replace_all(self, gradients: list[_Gradient]) -> None:
        """Replace all gradients."""
        self._gradients, self._orthogonal_parts = [], Window(np.empty((0, len(self._at.x))), sys.maxsize)
        self.longest, self.samples = 0.0, 0
        for gradient in gradients:
            self._store(gradient)

    def _orthogonal_part(self, row: Vector, constraint: int) -> Vector:
        """The component of a row orthogonal to the equalities; for a constraint, whose weight may be large, without rounding
        errors that the weight would amplify."""
        return self._span.orthogonal_part(self._free_part(row), drop_rounding_errors=constraint >= 0)

    def _new_span(self) -> Span:
        rows = self._free_part(self._at.jacobian[: self._at.equalities])
        return Span(rows, excluding=self._excluded_equalities, dependent=self._dependent)

    def _free_part(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows without the components of variables fixed at their bounds."""
        return rows if self._near_bounds is None else np.where(self._near_bounds.fixed, 0.0, rows)

    def find_jumps(self, trials: list[Trial]) -> set[int]:
        """Constraints whose gradients at x differ from those at all of the trial points; −1 stands for the objective."""

        def differ(own: Matrix, others: list[Matrix]) -> NDArray[np.bool_]:
            lengths = [np.linalg.norm(rows, axis=1) for rows in (own, *others)]
            limit = THRESHOLDS.similar * (THRESHOLDS.least_magnitude + np.max(lengths, axis=0))
            distances = [np.linalg.norm(other - own, axis=1) for other in others]
            different: NDArray[np.bool_] = np.all([~(size <= limit) for size in distances], axis=0) | ~np.isfinite(limit)
            return different

        relevant = self._relevant
        different = differ(self._at.jacobian[relevant], [trial.jacobian[relevant] for trial in trials])
        jumps = set(relevant[different].tolist())
        if differ(self._at.gradient[None], [trial.gradient[None] for trial in trials])[0]:
            jumps.add(-1)
        return jumps

    def drift(self, trial: Trial) -> float:
        """The change of the combination if its gradients are replaced by those at a trial point; relative, as the residual."""
        change = trial.gradient - self._at.gradient + self.multipliers @ (trial.jacobian - self._at.jacobian)
        return float(np.linalg.norm(self._free_part(change))) / (1.0 + self.longest)

    def discard(self, functions: set[int]) -> None:
        """Discard the gradients at x of some constraints, or of the objective (−1)."""
        self._discarded_functions |= functions
        remaining = [g for g in self._gradients if g.constraint not in functions]
        if any(0 <= i < self._at.equalities for i in functions):
            self._excluded_equalities |= functions
            self._span = self._new_span()
            remaining = [replace(g, orthogonal_part=self._orthogonal_part(g.row, g.constraint)) for g in remaining]
        self._replace_all(remaining)

    def add(self, trial: Trial, *, rules_out_descent: bool = False) -> None:
        """Add all gradients at a point. Constraints count only if their gradient clearly differs: a kink, not curvature.

        Equalities get the sign of their current multipliers, or that of their values if these gradients rule out a descent.
        """
        offset = self._at.x - trial.x
        distance = float(np.linalg.norm(offset))
        error = abs(self._at.f - trial.f - float(trial.gradient @ offset))
        self._append(-1, 1.0, trial.gradient, error, distance, trial.x)
        if not self._discarded_functions and np.array_equal(self._at.jacobian, trial.jacobian):
            return  # linear constraints
        here, there = self._at.jacobian[self._relevant], trial.jacobian[self._relevant]
        longer = np.maximum(np.linalg.norm(here, axis=1), np.linalg.norm(there, axis=1))
        kinked = np.linalg.norm(there - here, axis=1) > MIN_KINK_CHANGE * longer
        if self._discarded_functions:
            kinked |= np.isin(self._relevant, list(self._discarded_functions))
        for i in self._relevant[kinked].tolist():
            row = trial.jacobian[i]
            side = trial.c[i] if rules_out_descent else self.multipliers[i]
            sign = 1.0 if i >= self._at.equalities or side >= 0 else -1.0
            error = abs(float(self._at.c[i] - trial.c[i] - row @ offset))
            self._append(i, sign, sign * row, error, distance, trial.x)

    def use_one_sign(self) -> bool:
        """Use the gradients of each equality with the sign that contributes more; whether any had been used with both signs.

        When a gradient is added, the sign of its multiplier may not be known yet; the gradient at x may have either sign.
        """
        signs, count = np.where(self._mostly_positive, 1.0, -1.0), self._at.equalities
        opposite = [0 <= g.constraint < count and g.sign != signs[g.constraint] for g in self._gradients]
        if any(opposite):
            self._replace_all([g.negated() if other else g for g, other in zip(self._gradients, opposite, strict=True)])
            return True
        free = set(np.nonzero(self._conflicts[:count] > 0)[0].tolist()) - self._discarded_functions
        if free:
            self.discard(free)
            for i in free:
                self._append(i, signs[i], signs[i] * self._at.jacobian[i])
        return bool(free)

    def restrict(self, radius: float) -> None:
        """Drop gradients from points farther away than the radius."""
        near = [g for g in self._gradients if g.distance <= radius]
        if len(near) < len(self._gradients):
            self._replace_all(near)

    def solve(self) -> None:
        """Find the combination: short, and with small errors."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # an overflow is detected later
            if self._near_bounds is None:
                self._solve()
            else:
                self._solve_with_bounds(self._near_bounds)

    def _solve_with_bounds(self, bounds: _NearBounds) -> None:
        """Find the combination with variables fixed at bounds, as long as the descent points out of the box."""
        self._fix(bounds, bounds.near)
        while True:
            self._solve()
            released = bounds.fixed & bounds.inward(self._unprojected)
            if not released.any():
                break
            self._fix(bounds, bounds.fixed & ~released)
        self.bound_multipliers = np.where(bounds.fixed, self._unprojected, 0.0)
        self.bound_complementarity = float((np.abs(self.bound_multipliers) * bounds.distance).max(initial=0.0))

    def _fix(self, bounds: _NearBounds, fixed: NDArray[np.bool_]) -> None:
        if not np.array_equal(fixed, bounds.fixed):
            bounds.fixed = fixed
            self._span = self._new_span()
            self._replace_all([replace(g, orthogonal_part=self._orthogonal_part(g.row, g.constraint)) for g in self._gradients])

    def _solve(self) -> None:
        gradients, longest, large = self._gradients, self.longest, len(self._at.x) > MAX_DENSE_VARIABLES
        scale = max(longest, 1e-300)
        rows = stack(*(g.orthogonal_part[None] for g in gradients)) if large else self._orthogonal_parts.entries
        errors = np.array([g.error for g in gradients])
        scaled_errors = errors * (1.0 + longest) / (1.0 + abs(self._at.f))
        lengths = np.array([scale if g.constraint < 0 else max(g.length, 1e-300) for g in gradients])
        system: Matrix
        if isinstance(rows, Rows):
            system = triangular_factor(rows, scaled_errors, lengths)
        else:
            system = np.vstack([rows.T, scaled_errors]) / lengths
        if not self._span.finite or not np.isfinite(system).all():
            self.vector, self.gap, self._largest_component = np.full(len(self._at.x), np.inf), np.inf, np.inf
            return
        if len(system) > MIN_ASPECT_RATIO_FOR_QR * len(gradients):
            system = np.asarray(np.linalg.qr(system, mode="r"))
        simplex = np.array([1.0 if g.constraint < 0 else 0.0 for g in gradients])
        try:
            y, _ = nnls(np.vstack([system, simplex]), np.append(np.zeros(len(system)), 1.0), maxiter=50 * len(gradients))
        except RuntimeError:  # too many iterations: no short combination is known
            y = simplex
        total = float(y @ simplex)
        if not total > 0:
            y, total = simplex, float(self.samples)
        weights = y / total / lengths * scale
        self.vector = self._free_part(weights @ rows)
        self._set_multipliers(gradients, weights)
        self._largest_component = self._componentwise(gradients, weights)
        points = {id(g.point): g.point for g, weight in zip(gradients, weights.tolist(), strict=True) if weight > 0}
        self.support = tuple(point for point in points.values() if point is not None)
        combined = [g for g, weight in zip(gradients, weights.tolist(), strict=True) if weight > 0]
        self.kinks = _differences(combined, len(self._at.x))
        self.gap = float(weights @ errors) / (1.0 + abs(self._at.f))
        distances = np.array([g.distance if g.constraint >= 0 and g.distance > 0 else np.inf for g in gradients])
        self.turn = 2.0 * float(weights @ (errors / distances)) / (1.0 + longest)

    def _componentwise(self, gradients: list[_Gradient], weights: Vector) -> float:
        """The largest component of the combination, relative to a typical slope + the sum of the terms combined in it."""
        canceled = self._slopes.copy()
        for gradient, weight in zip(gradients, weights.tolist(), strict=True):
            if weight != 0.0:
                canceled += weight * np.abs(gradient.row)
        for multiplier, row in zip(self.multipliers[: self._at.equalities], self._at.jacobian, strict=False):
            canceled += abs(multiplier) * np.abs(row)
        return float((np.abs(self.vector) / canceled).max(initial=0.0))

    def _set_multipliers(self, gradients: list[_Gradient], weights: Vector) -> None:
        """Set the multipliers of the constraints, and the measures of cancellation and of sign conflicts."""
        count = len(self._at.c)
        positive, negative = np.zeros(count), np.zeros(count)
        self.multipliers = np.zeros(count)
        terms = [(gradient, weight) for gradient, weight in zip(gradients, weights.tolist(), strict=True) if weight != 0.0]
        for gradient, weight in terms:
            if gradient.constraint >= 0:
                self.multipliers[gradient.constraint] += gradient.sign * weight
                (positive if gradient.sign > 0 else negative)[gradient.constraint] += weight * gradient.length
        equalities = self._at.equalities
        if equalities or self._near_bounds is not None:
            total = np.array([weight for _, weight in terms]) @ stack(*(gradient.row[None] for gradient, _ in terms))
            free = -self._span.multipliers(self._free_part(total))
            self._unprojected = total + free @ self._at.jacobian[:equalities]
            self.multipliers[:equalities] += free
            parts = free * self._lengths[:equalities]
            positive[:equalities] += np.maximum(parts, 0.0)
            negative[:equalities] += np.maximum(-parts, 0.0)
        self.longest_part = float(np.maximum(positive, negative).max(initial=0.0))
        self._conflicts, self._mostly_positive = np.minimum(positive, negative), positive >= negative
        self.sign_conflict = float(self._conflicts.max(initial=0.0))


def _differences(gradients: list[_Gradient], size: int) -> Matrix:
    """The differences between the first gradient of each function and its other gradients."""
    first: dict[int, Vector] = {}
    differences = [g.row - first.setdefault(g.constraint, g.row) for g in gradients]
    rows = [row for row in differences if row.any()]
    return np.array(rows) if rows else np.zeros((0, size))
