"""Quadratic programs in which groups of entries lie in balls: the duals of models with Euclidean norms.

    min ½yᵀQy + qᵀy,   the first entries on a simplex, those of each ball ‖y_g‖₂ ≤ r_g, the others between two bounds

An interior-point method without a warm start identifies the active bounds and spheres, so the solution does not depend on other
programs. Newton steps on the optimality conditions with these active then solve it to rounding errors (`polish`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.interior_point import NO_BALL, interior_point

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_ACTIVE_SET_CHANGES = 12
"""How often `polish` changes the active bounds and spheres."""
MAX_NEWTON_STEPS = 20
"""Newton steps for each set of active bounds and spheres."""
RIDGE = 1e-10
"""Fraction of the diagonal that is added to keep Newton steps short if solutions are not unique."""
KKT_TOLERANCE = 1e-12
"""The largest violation of the optimality conditions, relative to the terms in them."""


@dataclass(frozen=True)
class BallProgram:
    """min ½yᵀQy + qᵀy over a simplex, balls and a box; for entries of balls `upper` is the radius."""

    matrix: Matrix
    linear: Vector
    lower: Vector
    upper: Vector
    balls: NDArray[np.int64]
    """The ball number of each entry, from 0; `NO_BALL` for entries of the box or the simplex."""
    simplex: int = 0

    @cached_property
    def boxed(self) -> Mask:
        """The entries that are in no ball."""
        mask: Mask = self.balls == NO_BALL
        return mask

    @cached_property
    def radii(self) -> Vector:
        """The radii of the balls."""
        radii = np.zeros(int(self.balls.max(initial=-1)) + 1)
        radii[self.balls[~self.boxed]] = self.upper[~self.boxed]
        return radii

    def lengths(self, y: Vector) -> Vector:
        """The Euclidean norms of the parts of y in balls."""
        inside = ~self.boxed
        return np.sqrt(np.bincount(self.balls[inside], y[inside] ** 2, minlength=len(self.radii)))

    def feasible(self, y: Vector) -> Vector:
        """y scaled or clipped into the simplex, the balls and the box."""
        lengths = self.lengths(y)
        factors = self.radii / np.maximum(np.maximum(lengths, self.radii), np.finfo(float).tiny)
        y = np.where(self.boxed, np.clip(y, self.lower, self.upper), y * factors[self.balls] if len(factors) else y)
        if self.simplex:
            y[: self.simplex] /= y[: self.simplex].sum()
        return y

    def gap(self, y: Vector) -> float:
        """The duality gap of a feasible y: an upper bound on its suboptimality, relative to the parts of its value."""
        slope = self.matrix @ y + self.linear
        inside, box = ~self.boxed, self.boxed.copy()
        box[: self.simplex] = False
        with np.errstate(invalid="ignore"):
            away = np.where(slope > 0, slope * (y - self.lower), slope * (y - self.upper))
        gap = float(np.where(slope == 0, 0.0, away)[box].sum())
        gap += float(slope[inside] @ y[inside] + self.radii @ self.lengths(slope))
        if self.simplex:
            part = slope[: self.simplex]
            gap += float(part @ y[: self.simplex] - part.min())
        size = float(y @ (self.matrix @ y)) + float(np.abs(self.linear) @ np.abs(y))
        return gap / max(size, np.finfo(float).tiny)


def solve_ball_program(program: BallProgram, watch: Callable[[], None] | None = None) -> Vector:
    """The solution; `watch` is called before each iteration of the interior-point method, and may raise.

    >>> program = BallProgram(np.eye(2), np.array([-3.0, -4.0]), -np.ones(2), np.ones(2), np.zeros(2, dtype=np.int64))
    >>> solve_ball_program(program)
    array([0.6, 0.8])
    """
    fixed = program.lower >= program.upper
    fixed[: program.simplex] = program.simplex == 1
    y = np.where(fixed, program.lower, 0.0)
    if program.simplex == 1:
        y[0] = 1.0
    rest = np.nonzero(~fixed)[0]
    if len(rest):
        part = _without(program, y, rest)
        interior = interior_point(part.matrix, part.linear, part.lower, part.upper, part.balls, part.simplex, watch)
        start = part.feasible(interior.y)
        exact = polish(part, start, interior.bound_sides, interior.on_sphere)
        y[rest] = start if exact is None or not part.gap(exact) <= max(part.gap(start), KKT_TOLERANCE) else exact
    return y


def _without(program: BallProgram, y: Vector, rest: NDArray[np.intp]) -> BallProgram:
    """The program for some entries, with the others fixed."""
    balls = program.balls[rest]
    inside = balls != NO_BALL
    balls[inside] = np.unique(balls[inside], return_inverse=True)[1]
    return replace(
        program,
        matrix=np.ascontiguousarray(program.matrix[rest[:, None], rest]),
        linear=program.linear[rest] + program.matrix[rest] @ y,
        lower=program.lower[rest],
        upper=program.upper[rest],
        balls=balls,
        simplex=0 if program.simplex == 1 else program.simplex,
    )


def polish(program: BallProgram, y: Vector, bound_sides: NDArray[np.int64], on_sphere: Mask) -> Vector | None:
    """The exact solution, from an approximate one and its active bounds and spheres; None if it cannot be found.

    `bound_sides` is −1 for entries at their lower bound, 1 for those at their upper bound, 0 for others.
    """
    bound_sides, on_sphere = bound_sides.copy(), on_sphere.copy()
    for _ in range(MAX_ACTIVE_SET_CHANGES):
        state = _Newton(program, bound_sides, on_sphere).run(y)
        if state is None:
            return None
        solution, slope, level, multipliers = state
        lengths, radii = program.lengths(solution), program.radii
        size = np.abs(program.matrix) @ np.abs(solution) + np.abs(program.linear)
        beyond = np.where(solution < program.lower, -1, np.where(solution > program.upper, 1, 0))
        beyond[~program.boxed] = 0
        reduced = slope + level  # pushes an active entry against its bound, unless the bound should be released
        back = (bound_sides != 0) & (reduced * bound_sides > KKT_TOLERANCE * size)
        outside = ~on_sphere & (lengths > radii * (1.0 + KKT_TOLERANCE))
        inward = on_sphere & (multipliers < 0.0)
        if not (beyond.any() or back.any() or outside.any() or inward.any()):
            return program.feasible(solution)
        bound_sides = np.where(beyond != 0, beyond, np.where(back, 0, bound_sides))
        on_sphere = (on_sphere | outside) & ~inward
        y = program.feasible(solution)
    return None


class _Newton:
    """Newton's method on the optimality conditions, with given active bounds and spheres."""

    def __init__(self, program: BallProgram, bound_sides: NDArray[np.int64], on_sphere: Mask) -> None:
        self._program, self._bound_sides = program, bound_sides
        self._spheres = np.nonzero(on_sphere)[0]
        self._free = np.nonzero(bound_sides == 0)[0]
        balls = program.balls[self._free]
        self._mine = balls[:, None] == self._spheres[None]
        self._row = (self._free < program.simplex).astype(np.float64)[:, None][:, : min(program.simplex, 1)]

    def run(self, y: Vector) -> tuple[Vector, Vector, Vector, Vector] | None:
        """The solution, its slopes, the multiplier of the simplex, and those of the spheres; None if there is none."""
        program, free, mine = self._program, self._free, self._mine
        y = np.where(self._bound_sides < 0, program.lower, np.where(self._bound_sides > 0, program.upper, y))
        radii = program.radii[self._spheres]
        slope = program.matrix @ y + program.linear
        parts = mine * y[free, None]
        multipliers = -(parts.T @ slope[free]) / radii**2
        level = -float(slope[: program.simplex].min()) if program.simplex else 0.0
        diagonal = program.matrix.diagonal()
        ridge = (RIDGE * (diagonal + RIDGE * diagonal.max(initial=0.0)) + np.finfo(float).tiny)[free]
        own, least_error, best = program.matrix[free[:, None], free], np.inf, None
        for _ in range(MAX_NEWTON_STEPS):
            parts = mine * y[free, None]
            residual = np.concatenate(
                [
                    slope[free] + parts @ multipliers + level * self._row.sum(axis=1),
                    0.5 * ((parts**2).sum(axis=0) - radii**2),
                    y[: program.simplex].sum(keepdims=True) - 1.0 if program.simplex else np.zeros(0),
                ]
            )
            size = np.abs(program.matrix[free]) @ np.abs(y) + np.abs(program.linear[free])
            whole = np.concatenate([size + ridge, radii**2, np.ones(self._row.shape[1])])
            error = float((np.abs(residual) / whole).max(initial=0.0))
            if error < least_error:
                spread = np.zeros(len(program.radii))
                spread[self._spheres] = multipliers
                levels = np.zeros(len(y))
                levels[: program.simplex] = level
                least_error, best = error, (y.copy(), slope, levels, spread)
            if not error > 1e-15 or not np.isfinite(error):
                break
            border = np.hstack([parts, self._row])
            corner = np.diag(np.concatenate([-1e-14 * radii**2, np.zeros(self._row.shape[1])]))
            system = np.block([[own + np.diag(mine @ multipliers + ridge), border], [border.T, corner]])
            try:
                step = np.linalg.solve(system, -residual)
            except np.linalg.LinAlgError:
                break
            y = y.copy()
            y[free] += step[: len(free)]
            multipliers = multipliers + step[len(free) : len(free) + len(radii)]
            level += float(step[len(free) + len(radii) :].sum())
            slope = program.matrix @ y + program.linear
        return best if least_error <= KKT_TOLERANCE else None
