"""Mehrotra's predictor-corrector interior-point method with Nesterov–Todd scaling, over a simplex, balls and a box.

The part of y in a ball of radius r forms, together with r, a point of a second-order cone. Iterates are primal feasible from
the start, and all matrices have the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

NO_BALL = -1
"""The ball number of an entry that is in no ball."""
MAX_ITERATIONS = 60
GAP_TOLERANCE = 1e-11
"""The relative duality gap at which the method stops."""
BOUNDARY_FRACTION = 0.99
"""The fraction of the distance to the boundary that a step may take."""
MIN_STEP_LENGTH = 1e-10
"""The method stops at shorter steps."""
RIDGE = 1e-15
"""Added to the diagonal of matrices, which are scaled to entries of order 1, to keep them definite."""


class InteriorSolution(NamedTuple):
    """An interior solution, and the bounds and spheres that appear to be active."""

    y: Vector
    bound_sides: NDArray[np.int64]
    """−1 for entries at their lower bound, 1 for those at their upper bound, 0 for others."""
    on_sphere: Mask
    """For each ball, whether its part of y lies on the sphere."""


def interior_point(
    matrix: Matrix,
    linear: Vector,
    lower: Vector,
    upper: Vector,
    balls: NDArray[np.int64],
    simplex: int,
    watch: Callable[[], None] | None = None,
) -> InteriorSolution:
    """An approximate solution of min ½yᵀQy + qᵀy; bounds may be infinite, and for entries of balls `upper` is the radius.

    `watch` is called before each iteration, and may raise.

    >>> square = np.eye(2), np.array([-3.0, -4.0]), -np.ones(2), np.ones(2), np.zeros(2, dtype=np.int64)
    >>> interior_point(*square, 0).y.round(6)
    array([0.6, 0.8])
    """
    # Scale by the radii and the widths of bounds.
    spans = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), 1.0)
    spans[:simplex] = 1.0
    scaled, shifted = matrix * spans[:, None] * spans, linear * spans
    size = max(float(np.abs(scaled.diagonal()).max(initial=0.0)), float(np.abs(shifted).max(initial=0.0)), 1e-300)
    path = _Path(scaled / size, shifted / size, lower / spans, upper / spans, balls, simplex)
    path.follow(watch)
    return path.result(spans)


class _Cones:
    """Slacks or multipliers: one number for each bound, and a head and a tail for each ball."""

    def __init__(self, line: Vector, head: Vector, tail: Vector) -> None:
        self.line, self.head, self.tail = line, head, tail

    def plus(self, length: float, way: _Cones) -> _Cones:
        """The point after a step."""
        return _Cones(self.line + length * way.line, self.head + length * way.head, self.tail + length * way.tail)

    def times(self, factor: float) -> _Cones:
        """A multiple of this vector."""
        return _Cones(factor * self.line, factor * self.head, factor * self.tail)


class _Scaling(NamedTuple):
    """The Nesterov–Todd scaling matrix W, for which W·multipliers = W⁻¹·slacks."""

    line: Vector
    head: Vector
    tail: Vector
    size: Vector
    ids: NDArray[np.int64]

    def apply(self, cones: _Cones) -> _Cones:
        """The matrix times multipliers."""
        return self._scaled(cones, self.line, self.size, 1.0)

    def invert(self, cones: _Cones) -> _Cones:
        """The inverse times slacks."""
        return self._scaled(cones, 1.0 / self.line, 1.0 / self.size, -1.0)

    def _scaled(self, cones: _Cones, line: Vector, size: Vector, sign: float) -> _Cones:
        inner = np.bincount(self.ids, self.tail * cones.tail, minlength=len(self.head))
        tail = cones.tail + self.tail * (sign * cones.head + inner / (1.0 + self.head))[self.ids]
        return _Cones(line * cones.line, size * (self.head * cones.head + sign * inner), size[self.ids] * tail)


def _scaling(s: _Cones, z: _Cones, ids: NDArray[np.int64]) -> _Scaling | None:
    """The Nesterov–Todd scaling; None on the boundary of the cones."""
    count = len(s.head)

    def sums(parts: Vector) -> Vector:
        return np.bincount(ids, parts, minlength=count).astype(np.float64)

    s_square, z_square = s.head**2 - sums(s.tail**2), z.head**2 - sums(z.tail**2)
    if not (np.all(s_square > 0) and np.all(z_square > 0) and np.all(s.line > 0) and np.all(z.line > 0)):
        return None
    s_root, z_root = np.sqrt(s_square), np.sqrt(z_square)
    middle = 2.0 * np.sqrt(0.5 * (1.0 + (s.head * z.head + sums(s.tail * z.tail)) / (s_root * z_root)))
    head = (s.head / s_root + z.head / z_root) / middle
    tail = (s.tail / s_root[ids] - z.tail / z_root[ids]) / middle[ids]
    return _Scaling(np.sqrt(s.line / z.line), head, tail, np.sqrt(s_root / z_root), ids)


class _Path:
    """The iterate of the method on the central path."""

    def __init__(
        self, matrix: Matrix, linear: Vector, lower: Vector, upper: Vector, balls: NDArray[np.int64], simplex: int
    ) -> None:
        self._matrix, self._linear, self._simplex = matrix, linear, simplex
        self._in_ball = np.nonzero(balls != NO_BALL)[0]
        self._ids = balls[self._in_ball]
        self._count = int(self._ids.max(initial=-1)) + 1
        self._same = self._ids[:, None] == self._ids[None]
        boxed = balls == NO_BALL
        above = boxed & np.isfinite(upper)
        above[:simplex] = False
        self._lows, self._highs = np.nonzero(boxed & np.isfinite(lower))[0], np.nonzero(above)[0]
        self._bound_entries = np.concatenate([self._lows, self._highs])
        self._signs = np.concatenate([np.ones(len(self._lows)), -np.ones(len(self._highs))])
        self._bounds = np.concatenate([lower[self._lows], -upper[self._highs]])
        both = np.isfinite(lower) & np.isfinite(upper)
        middle = 0.5 * (np.where(both, lower, 0.0) + np.where(both, upper, 0.0))
        middle = np.where(np.isfinite(lower) & ~np.isfinite(upper), lower + 1.0, middle)
        self.y = np.where(~np.isfinite(lower) & np.isfinite(upper), upper - 1.0, middle)
        self.y[:simplex] = 1.0 / max(simplex, 1)
        self.y[self._in_ball] = 0.0
        self._level = 0.0
        self._slack = self._slacks()
        first = 1.0 + 0.0 * self._slack.line
        self._dual = _Cones(first, np.ones(self._count), np.zeros(len(self._ids)))
        self._degree = len(first) + self._count

    def _sums(self, parts: Vector) -> Vector:
        sums: Vector = np.bincount(self._ids, parts, minlength=self._count).astype(np.float64)
        return sums

    def _slacks(self) -> _Cones:
        line = self._signs * self.y[self._bound_entries] - self._bounds
        return _Cones(line, np.ones(self._count), self.y[self._in_ball])

    def _inner(self, one: _Cones, other: _Cones) -> float:
        return float(one.line @ other.line + one.head @ other.head + one.tail @ other.tail)

    def _transposed(self, cones: _Cones) -> Vector:
        """The contribution of multipliers to the slopes."""
        slopes = np.bincount(self._bound_entries, -self._signs * cones.line, minlength=len(self.y)).astype(float)
        slopes[self._in_ball] -= cones.tail
        return slopes

    def follow(self, watch: Callable[[], None] | None) -> None:
        """Follow the central path until the gap is small or no step is possible."""
        for _ in range(MAX_ITERATIONS):
            if watch is not None:
                watch()
            slope = self._matrix @ self.y + self._linear
            dual = slope + self._transposed(self._dual)
            dual[: self._simplex] += self._level
            gap = self._inner(self._slack, self._dual)
            size = float(self.y @ (slope - self._linear)) + float(np.abs(self._linear) @ np.abs(self.y)) + 1e-300
            if gap <= GAP_TOLERANCE * size and float(np.abs(dual).max(initial=0.0)) <= 1e-11:
                return
            if not self._advance(dual, gap / max(self._degree, 1)):
                return

    def _advance(self, dual: Vector, level: float) -> bool:
        """Take one predictor-corrector step; whether it was possible."""
        s, z, ids = self._slack, self._dual, self._ids
        scaling = _scaling(s, z, ids)
        system = None if scaling is None else self._system(scaling)
        if scaling is None or system is None:
            return False
        around = scaling.apply(z)
        _, _, slack, multipliers = self._direction(dual, scaling, system, around.times(-1.0))
        length = min(1.0, self._max_step(s, slack), self._max_step(z, multipliers))
        ahead = self._inner(s.plus(length, slack), z.plus(length, multipliers))
        center = max(0.0, min(1.0, ahead / (level * self._degree))) ** 3 * level
        first, second = scaling.invert(slack), scaling.apply(multipliers)
        heads = around.head**2 + self._sums(around.tail**2) + first.head * second.head + self._sums(first.tail * second.tail)
        tails = (2.0 * around.head)[ids] * around.tail + first.head[ids] * second.tail + second.head[ids] * first.tail
        products = _Cones(around.line**2 + first.line * second.line - center, heads - center, tails)
        wanted = self._jordan_quotient(around, products).times(-1.0)
        change, rise, slack, multipliers = self._direction(dual, scaling, system, wanted)
        length = min(1.0, BOUNDARY_FRACTION * min(self._max_step(s, slack), self._max_step(z, multipliers)))
        if not (np.isfinite(change).all() and length > MIN_STEP_LENGTH):
            return False
        self.y = self.y + length * change
        self._level += length * rise
        self._slack, self._dual = self._slacks(), z.plus(length, multipliers)
        return bool((self._slack.line > 0).all())

    def _system(self, scaling: _Scaling) -> tuple[Any, Vector] | None:
        """The Cholesky factor of the step's matrix and its solution for the simplex constraint; None if not definite."""
        system = self._matrix.copy()
        every = np.arange(len(system))
        system[every, every] += np.bincount(self._bound_entries, 1.0 / scaling.line**2, minlength=len(system)) + RIDGE
        block = 2.0 * np.outer(scaling.tail, scaling.tail) * self._same + np.eye(len(self._ids))
        system[self._in_ball[:, None], self._in_ball] += block / (scaling.size**2)[self._ids][:, None]
        try:
            factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        ones = (every < self._simplex).astype(np.float64)
        return factor, cho_solve(factor, ones, check_finite=False) if self._simplex else ones

    def _direction(
        self, dual: Vector, scaling: _Scaling, system: tuple[Any, Vector], wanted: _Cones
    ) -> tuple[Vector, float, _Cones, _Cones]:
        """The step for which the scaled steps of slacks and multipliers add up to `wanted`."""
        factor, along = system
        change = cho_solve(factor, -dual - self._transposed(scaling.invert(wanted)), check_finite=False)
        part = slice(0, self._simplex)
        rise = float(change[part].sum() / along[part].sum()) if self._simplex else 0.0
        change = change - rise * along
        slack = _Cones(self._signs * change[self._bound_entries], np.zeros(self._count), change[self._in_ball])
        return change, rise, slack, scaling.invert(wanted.plus(-1.0, scaling.invert(slack)))

    def _jordan_quotient(self, by: _Cones, what: _Cones) -> _Cones:
        """`what` divided by `by` in the Jordan algebra of the cones."""
        ids = self._ids
        head = (by.head * what.head - self._sums(by.tail * what.tail)) / (by.head**2 - self._sums(by.tail**2))
        return _Cones(what.line / by.line, head, (what.tail - head[ids] * by.tail) / by.head[ids])

    def _max_step(self, at: _Cones, way: _Cones) -> float:
        """The longest step that stays in the cones."""
        with np.errstate(divide="ignore", invalid="ignore"):
            length = float(np.where(way.line < 0, -at.line / way.line, np.inf).min(initial=np.inf))
            a = way.head**2 - self._sums(way.tail**2)
            b = at.head * way.head - self._sums(at.tail * way.tail)
            c = at.head**2 - self._sums(at.tail**2)
            root = np.sqrt(np.maximum(b * b - a * c, 0.0))
            # The smallest positive root of a t² + 2 b t + c, written without cancellation.
            ahead = np.where((a < 0) | ((b < 0) & (b * b >= a * c)), c / np.where(root - b > 0, root - b, np.nan), np.inf)
        return min(length, float(np.nan_to_num(ahead, nan=np.inf, posinf=np.inf).min(initial=np.inf)))

    def result(self, spans: Vector) -> InteriorSolution:
        """The solution in the units of the program."""
        s, z = self._slack, self._dual
        bound_sides = np.zeros(len(self.y), dtype=np.int64)
        at_bound = s.line < z.line
        bound_sides[self._bound_entries[at_bound]] = np.where(self._signs[at_bound] > 0, -1, 1)
        left = s.head - np.sqrt(self._sums(s.tail**2))
        return InteriorSolution(self.y * spans, bound_sides, left < z.head)
