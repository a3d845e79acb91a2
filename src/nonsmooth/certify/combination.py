"""The gradients that a certificate gathers, and the combination of them that comes nearest to proving a point stationary.

The shortest combination is a nonnegative least-squares problem. With a simplex it is solved exactly by asking for
Σ w_k = 1 in the least-squares sense and rescaling: the residual is homogeneous in all multipliers together. The ν_j have no
sign: they take away what lies in the span of their gradients, which is done first, by a projection.
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
from nonsmooth.certify.span import DEPENDENT, Span
from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.options import Tolerances
from nonsmooth.thresholds import THRESHOLDS

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

TALL = 16
"""A system with more than so many times as many rows as columns is made triangular first."""


@dataclass(frozen=True)
class _Gradient:
    """A gradient of f (constraint −1) or of a constraint, at some distance from x."""

    constraint: int
    sign: float
    row: Vector
    error: float
    """How far its linearization lies from the value at x."""
    distance: float
    point: Vector | None
    """Where it was gathered; None at x itself."""
    outside: Vector
    """What the gradients of the equalities cannot take away of the row."""

    @cached_property
    def length(self) -> float:
        """Length of the row, computed once: certificates ask for it again and again."""
        return float(np.linalg.norm(self.row))

    def turned(self) -> _Gradient:
        """The same, used with the other sign."""
        return replace(self, sign=-self.sign, row=-self.row, outside=-self.outside)


class _Sides:
    """Variables at or near bounds, and which of them the bounds hold."""

    def __init__(self, x: Vector, box: Box, reach: float) -> None:
        below, above = x - box.lower, box.upper - x
        self._lower, self._upper = below <= reach, above <= reach
        self.near = self._lower | self._upper
        self.held = np.zeros(len(x), dtype=bool)
        self.distance = np.where(self.near, np.minimum(below, above), 0.0)

    def inward(self, gradient: Vector) -> NDArray[np.bool_]:
        """Where a descent leads into the box."""
        return (self._lower & ~self._upper & (gradient < 0)) | (self._upper & ~self._lower & (gradient > 0))


class Combination:
    """Gradients gathered so far, and the combination of them that comes nearest to proving x stationary."""

    def __init__(self, at: Trial, radius: float, tolerances: Tolerances, slopes: Vector, box: Box | None = None) -> None:
        self._slopes = slopes
        self._sides = None if box is None else _Sides(at.x, box, 2.0 * radius)
        self.bound_multipliers: Vector | None = None if box is None else np.zeros(len(at.x))
        """Positive for lower bounds, negative for upper ones."""
        self._at = at
        self._lengths = np.linalg.norm(at.jacobian, axis=1)
        reach = 2.0 * radius * self._lengths + tolerances.inequality
        equalities = at.equalities
        self._near = [i for i in range(equalities, len(at.c)) if at.c[i] >= -reach[i]]
        self._looked_at = np.array([*range(equalities), *self._near], dtype=np.intp)
        self._dependent = max(DEPENDENT, 1e3 * tolerances.noise)
        self._left_out: set[int] = set()
        """Equalities whose gradients at x are not used."""
        self._span = self._new_span()
        self._all: list[_Gradient] = []
        self._outsides = Window(np.empty((0, len(at.x))), sys.maxsize)
        """What equalities leave of the gradients, up to MAX_DENSE_VARIABLES variables."""
        self.longest = 0.0
        """Length of the longest gradient of f."""
        self.samples = 0
        """How many gradients of f there are."""
        self._distrusted: set[int] = set()
        """Whose gradients at x are forgotten."""
        self._append(-1, 1.0, at.gradient)
        for i in self._near:
            self._append(i, 1.0, at.jacobian[i])
        self.multipliers = np.zeros(len(at.c))
        self.vector = at.gradient
        self._largest_component = inf
        self.gap = 0.0
        self.turn = 0.0
        """How far constraints that turn may have moved the combination: by the errors of their gradients, relative."""
        self.bound_complementarity = 0.0
        """The largest multiplier of a bound times the distance from it."""
        self._whole = at.gradient
        """The combination with the components that bounds take care of."""
        self.strain = 0.0
        """Length of the longest part that a constraint contributes: where it is much longer than the sum, parts cancel."""
        self.torn = 0.0
        """Length of what an equality contributes with one sign while it contributes as much or more with the other."""
        self._both, self._upwards = np.zeros(len(at.c)), np.ones(len(at.c), dtype=bool)
        """The same for each constraint, and which contribute at least as much with a positive sign."""
        self.carrying: tuple[Vector, ...] = ()
        """Points whose gradients are part of the combination."""
        self.kinks: Matrix = np.zeros((0, len(at.x)))
        """Differences of the gradients of one function that are combined: directions across the kinks near x."""

    @property
    def residual(self) -> float:
        """What is left of the gradients, as a whole and component by component; infinite where that cannot be measured.

        As a whole it is relative to 1 + the longest gradient of f. That alone would hide what is left along a variable whose
        slopes are much smaller than those of others. So each component is also held to how steep functions are along its
        variable, plus the sum of what cancels there.
        """
        found = max(float(np.linalg.norm(self.vector)) / (1.0 + self.longest), self._largest_component)
        return found if self.samples and isfinite(found) and isfinite(self.longest) else inf

    def _append(
        self, constraint: int, sign: float, row: Vector, error: float = 0.0, distance: float = 0.0, point: Vector | None = None
    ) -> None:
        self._take(_Gradient(constraint, sign, row, error, distance, point, self._outside(row, constraint)))

    def _take(self, gradient: _Gradient) -> None:
        self._all.append(gradient)
        if gradient.constraint < 0:
            self.samples += 1
            self.longest = max(self.longest, gradient.length)
        if len(gradient.row) <= MAX_DENSE_VARIABLES:
            self._outsides.add(gradient.outside)

    def _keep(self, gradients: list[_Gradient]) -> None:
        """These and no others."""
        self._all, self._outsides = [], Window(np.empty((0, len(self._at.x))), sys.maxsize)
        self.longest, self.samples = 0.0, 0
        for gradient in gradients:
            self._take(gradient)

    def _outside(self, row: Vector, constraint: int) -> Vector:
        """What equalities leave of a row. The weight of a constraint may be anything, and so may what it makes of rounding."""
        return self._span.outside(self._free_part(row), or_nothing=constraint >= 0)

    def _new_span(self) -> Span:
        return Span(
            self._free_part(self._at.jacobian[: self._at.equalities]), but=self._left_out, dependent=self._dependent
        )  # fmt: skip

    def _free_part(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows without the components that bounds take care of."""
        return rows if self._sides is None else np.where(self._sides.held, 0.0, rows)

    def unlike(self, trials: list[Trial]) -> set[int]:
        """Constraints whose gradients at x differ from those at all of the trial points; −1 for the objective."""

        def differ(own: Matrix, others: list[Matrix]) -> NDArray[np.bool_]:
            lengths = [np.linalg.norm(rows, axis=1) for rows in (own, *others)]
            allowed = THRESHOLDS.similar * (THRESHOLDS.least_magnitude + np.max(lengths, axis=0))
            apart = [np.linalg.norm(other - own, axis=1) for other in others]
            found: NDArray[np.bool_] = np.all([~(way <= allowed) for way in apart], axis=0) | ~np.isfinite(allowed)
            return found

        looked_at = self._looked_at
        apart = differ(self._at.jacobian[looked_at], [trial.jacobian[looked_at] for trial in trials])
        unlike = set(looked_at[apart].tolist())
        if differ(self._at.gradient[None], [trial.gradient[None] for trial in trials])[0]:
            unlike.add(-1)
        return unlike

    def drift(self, trial: Trial) -> float:
        """How far the combination of the gradients at x moves if all are taken at a trial point; relative, as the residual."""
        way = trial.gradient - self._at.gradient + self.multipliers @ (trial.jacobian - self._at.jacobian)
        return float(np.linalg.norm(self._free_part(way))) / (1.0 + self.longest)

    def distrust(self, wrong: set[int]) -> None:
        """Forget the gradients at x of some constraints, or of the objective (−1)."""
        self._distrusted |= wrong
        left = [g for g in self._all if g.constraint not in wrong]
        if any(0 <= i < self._at.equalities for i in wrong):
            self._left_out |= wrong
            self._span = self._new_span()
            left = [replace(g, outside=self._outside(g.row, g.constraint)) for g in left]
        self._keep(left)

    def add(self, trial: Trial, *, preventing: bool = False) -> None:
        """All gradients at a point. Constraints count only where their gradient really differs: a kink, not a curve.

        Equalities get the sign of their multipliers so far, or that of their values where these are `preventing` a descent.
        """
        way = self._at.x - trial.x
        distance = float(np.linalg.norm(way))
        error = abs(self._at.f - trial.f - float(trial.gradient @ way))
        self._append(-1, 1.0, trial.gradient, error, distance, trial.x)
        if not self._distrusted and np.array_equal(self._at.jacobian, trial.jacobian):
            return  # linear constraints
        here, there = self._at.jacobian[self._looked_at], trial.jacobian[self._looked_at]
        longer = np.maximum(np.linalg.norm(here, axis=1), np.linalg.norm(there, axis=1))
        kinked = np.linalg.norm(there - here, axis=1) > 0.01 * longer
        if self._distrusted:
            kinked |= np.isin(self._looked_at, list(self._distrusted))
        for i in self._looked_at[kinked].tolist():
            row = trial.jacobian[i]
            side = trial.c[i] if preventing else self.multipliers[i]
            sign = 1.0 if i >= self._at.equalities or side >= 0 else -1.0
            error = abs(float(self._at.c[i] - trial.c[i] - row @ way))
            self._append(i, sign, sign * row, error, distance, trial.x)

    def use_one_sign(self) -> bool:
        """Use the gradients of each equality with the sign that contributes more; whether some were used with both.

        When a gradient is added, the sign of its multiplier may not be known yet, and that of x itself can have any.
        """
        signs, count = np.where(self._upwards, 1.0, -1.0), self._at.equalities
        wrong = [0 <= g.constraint < count and g.sign != signs[g.constraint] for g in self._all]
        if any(wrong):
            self._keep([g.turned() if other else g for g, other in zip(self._all, wrong, strict=True)])
            return True
        free = set(np.nonzero(self._both[:count] > 0)[0].tolist()) - self._distrusted
        if free:
            self.distrust(free)
            for i in free:
                self._append(i, signs[i], signs[i] * self._at.jacobian[i])
        return bool(free)

    def restrict(self, radius: float) -> None:
        """Forget gradients from points farther away."""
        near = [g for g in self._all if g.distance <= radius]
        if len(near) < len(self._all):
            self._keep(near)

    def solve(self) -> None:
        """Find the combination: short, and with small errors."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is too long is noticed
            if self._sides is None:
                self._solve()
            else:
                self._solve_within(self._sides)

    def _solve_within(self, sides: _Sides) -> None:
        """Find it where bounds take care of components, as long as these push out of the box."""
        self._hold(sides, sides.near)
        while True:
            self._solve()
            wrong = sides.held & sides.inward(self._whole)
            if not wrong.any():
                break
            self._hold(sides, sides.held & ~wrong)
        self.bound_multipliers = np.where(sides.held, self._whole, 0.0)
        self.bound_complementarity = float((np.abs(self.bound_multipliers) * sides.distance).max(initial=0.0))

    def _hold(self, sides: _Sides, held: NDArray[np.bool_]) -> None:
        if not np.array_equal(held, sides.held):
            sides.held = held
            self._span = self._new_span()
            self._keep([replace(g, outside=self._outside(g.row, g.constraint)) for g in self._all])

    def _solve(self) -> None:
        gradients, longest, large = self._all, self.longest, len(self._at.x) > MAX_DENSE_VARIABLES
        scale = max(longest, 1e-300)
        rows = stack(*(g.outside[None] for g in gradients)) if large else self._outsides.entries
        below = np.array([g.error for g in gradients])
        errors = below * (1.0 + longest) / (1.0 + abs(self._at.f))
        lengths = np.array([scale if g.constraint < 0 else max(g.length, 1e-300) for g in gradients])
        system = triangular_factor(rows, errors, lengths) if isinstance(rows, Rows) else np.vstack([rows.T, errors]) / lengths
        if not self._span.finite or not np.isfinite(system).all():
            self.vector, self.gap, self._largest_component = np.full(len(self._at.x), np.inf), np.inf, np.inf
            return
        if len(system) > TALL * len(gradients):
            system = np.linalg.qr(system, mode="r")
        simplex = np.array([1.0 if g.constraint < 0 else 0.0 for g in gradients])
        try:
            y, _ = nnls(np.vstack([system, simplex]), np.append(np.zeros(len(system)), 1.0), maxiter=50 * len(gradients))
        except RuntimeError:  # too many iterations: no combination is known to be short
            y = simplex
        total = float(y @ simplex)
        if not total > 0:
            y, total = simplex, float(self.samples)
        weights = y / total / lengths * scale
        self.vector = self._free_part(weights @ rows)
        self._tell_multipliers(gradients, weights)
        self._largest_component = self._componentwise(gradients, weights)
        points = {id(g.point): g.point for g, weight in zip(gradients, weights.tolist(), strict=True) if weight > 0}
        self.carrying = tuple(point for point in points.values() if point is not None)
        combined = [g for g, weight in zip(gradients, weights.tolist(), strict=True) if weight > 0]
        self.kinks = _differences(combined, len(self._at.x))
        self.gap = float(weights @ below) / (1.0 + abs(self._at.f))
        distances = np.array([g.distance if g.constraint >= 0 and g.distance > 0 else np.inf for g in gradients])
        self.turn = 2.0 * float(weights @ (below / distances)) / (1.0 + longest)

    def _componentwise(self, gradients: list[_Gradient], weights: Vector) -> float:
        """The largest component of the combination, relative to a typical slope + the sum of what is combined in it."""
        canceled = self._slopes.copy()
        for gradient, weight in zip(gradients, weights.tolist(), strict=True):
            if weight != 0.0:
                canceled += weight * np.abs(gradient.row)
        for multiplier, row in zip(self.multipliers[: self._at.equalities], self._at.jacobian, strict=False):
            canceled += abs(multiplier) * np.abs(row)
        return float((np.abs(self.vector) / canceled).max(initial=0.0))

    def _tell_multipliers(self, gradients: list[_Gradient], weights: Vector) -> None:
        """Multipliers of the constraints, and what their parts say against the combination."""
        count = len(self._at.c)
        above, below = np.zeros(count), np.zeros(count)
        self.multipliers = np.zeros(count)
        used = [(gradient, weight) for gradient, weight in zip(gradients, weights.tolist(), strict=True) if weight != 0.0]
        for gradient, weight in used:
            if gradient.constraint >= 0:
                self.multipliers[gradient.constraint] += gradient.sign * weight
                (above if gradient.sign > 0 else below)[gradient.constraint] += weight * gradient.length
        equalities = self._at.equalities
        if equalities or self._sides is not None:
            together = np.array([weight for _, weight in used]) @ stack(*(gradient.row[None] for gradient, _ in used))
            free = -self._span.multipliers(self._free_part(together))
            self._whole = together + free @ self._at.jacobian[:equalities]
            self.multipliers[:equalities] += free
            parts = free * self._lengths[:equalities]
            above[:equalities] += np.maximum(parts, 0.0)
            below[:equalities] += np.maximum(-parts, 0.0)
        self.strain = float(np.maximum(above, below).max(initial=0.0))
        self._both, self._upwards = np.minimum(above, below), above >= below
        self.torn = float(self._both.max(initial=0.0))


def _differences(gradients: list[_Gradient], size: int) -> Matrix:
    """Of each function: its gradients but the first, less the first."""
    first: dict[int, Vector] = {}
    found = [g.row - first.setdefault(g.constraint, g.row) for g in gradients]
    rows = [row for row in found if row.any()]
    return np.array(rows) if rows else np.zeros((0, size))
