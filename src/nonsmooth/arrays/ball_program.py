"""Quadratic programs in which some groups of entries lie in balls: the duals of models with Euclidean norms.

    min ½yᵀQy + qᵀy,   the first entries on a simplex, those of each ball ‖y_g‖₂ ≤ r_g, the others between two bounds

An interior-point method finds which bounds and spheres hold the answer, from no start: so the answer does not depend on where
other programs ended. Newton steps on the conditions of optimality with these held then find it to rounding errors (`polish`).
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

MOST_FLIPS = 12
"""How often what is held on a bound or a sphere is changed."""
MOST_NEWTON_STEPS = 20
"""With what is held."""
RIDGE = 1e-10
"""Part of the diagonal that keeps Newton steps short where answers are not unique."""
EXACT = 1e-12
"""How far conditions may be from being satisfied, relative to the numbers in them."""


@dataclass(frozen=True)
class BallProgram:
    """min ½yᵀQy + qᵀy over a simplex, balls and a box; `upper` is the radius for the entries of balls."""

    matrix: Matrix
    linear: Vector
    lower: Vector
    upper: Vector
    balls: NDArray[np.int64]
    """The number of the ball of each entry, from 0 on; `NO_BALL` for entries of the box or the simplex."""
    simplex: int = 0

    @cached_property
    def boxed(self) -> Mask:
        """The entries that are in no ball."""
        found: Mask = self.balls == NO_BALL
        return found

    @cached_property
    def radii(self) -> Vector:
        """Those of the balls."""
        found = np.zeros(int(self.balls.max(initial=-1)) + 1)
        found[self.balls[~self.boxed]] = self.upper[~self.boxed]
        return found

    def lengths(self, y: Vector) -> Vector:
        """The Euclidean norms of the parts of y in balls."""
        inside = ~self.boxed
        return np.sqrt(np.bincount(self.balls[inside], y[inside] ** 2, minlength=len(self.radii)))

    def feasible(self, y: Vector) -> Vector:
        """y moved into the simplex, the balls and the box."""
        lengths = self.lengths(y)
        factors = self.radii / np.maximum(np.maximum(lengths, self.radii), np.finfo(float).tiny)
        y = np.where(self.boxed, np.clip(y, self.lower, self.upper), y * factors[self.balls] if len(factors) else y)
        if self.simplex:
            y[: self.simplex] /= y[: self.simplex].sum()
        return y

    def gap(self, y: Vector) -> float:
        """By how much a feasible y may miss the least value at most, relative to the parts of its value."""
        slope = self.matrix @ y + self.linear
        inside, box = ~self.boxed, self.boxed.copy()
        box[: self.simplex] = False
        with np.errstate(invalid="ignore"):
            away = np.where(slope > 0, slope * (y - self.lower), slope * (y - self.upper))
        found = float(np.where(slope == 0, 0.0, away)[box].sum())
        found += float(slope[inside] @ y[inside] + self.radii @ self.lengths(slope))
        if self.simplex:
            part = slope[: self.simplex]
            found += float(part @ y[: self.simplex] - part.min())
        size = float(y @ (self.matrix @ y)) + float(np.abs(self.linear) @ np.abs(y))
        return found / max(size, np.finfo(float).tiny)


def least_in_balls(program: BallProgram, watch: Callable[[], None] | None = None) -> Vector:
    """The answer; `watch` is called before each iteration of the interior-point method, and may raise.

    >>> program = BallProgram(np.eye(2), np.array([-3.0, -4.0]), -np.ones(2), np.ones(2), np.zeros(2, dtype=np.int64))
    >>> least_in_balls(program)
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
        near = interior_point(part.matrix, part.linear, part.lower, part.upper, part.balls, part.simplex, watch)
        found = part.feasible(near.y)
        exact = polish(part, found, near.pressed, near.on_sphere)
        y[rest] = found if exact is None or not part.gap(exact) <= max(part.gap(found), EXACT) else exact
    return y


def _without(program: BallProgram, y: Vector, rest: NDArray[np.intp]) -> BallProgram:
    """The program for some entries, where the others are known."""
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


def polish(program: BallProgram, y: Vector, pressed: NDArray[np.int64], on_sphere: Mask) -> Vector | None:
    """The exact answer, from one nearby and from what holds it; None where that is not found.

    `pressed` is −1 for entries at their lower bound, 1 at the upper one, 0 for others.
    """
    pressed, on_sphere = pressed.copy(), on_sphere.copy()
    for _ in range(MOST_FLIPS):
        state = _Newton(program, pressed, on_sphere).run(y)
        if state is None:
            return None
        found, slope, level, multipliers = state
        lengths, radii = program.lengths(found), program.radii
        size = np.abs(program.matrix) @ np.abs(found) + np.abs(program.linear)
        beyond = np.where(found < program.lower, -1, np.where(found > program.upper, 1, 0))
        beyond[~program.boxed] = 0
        pulled = slope + level  # of entries at a bound, it points into it
        back = (pressed != 0) & (pulled * pressed > EXACT * size)
        outside = ~on_sphere & (lengths > radii * (1.0 + EXACT))
        inward = on_sphere & (multipliers < 0.0)
        if not (beyond.any() or back.any() or outside.any() or inward.any()):
            return program.feasible(found)
        pressed = np.where(beyond != 0, beyond, np.where(back, 0, pressed))
        on_sphere = (on_sphere | outside) & ~inward
        y = program.feasible(found)
    return None


class _Newton:
    """Newton's method on the conditions of optimality, with some entries at bounds and some balls' parts on their spheres."""

    def __init__(self, program: BallProgram, pressed: NDArray[np.int64], on_sphere: Mask) -> None:
        self._program, self._pressed = program, pressed
        self._spheres = np.nonzero(on_sphere)[0]
        self._free = np.nonzero(pressed == 0)[0]
        balls = program.balls[self._free]
        self._mine = balls[:, None] == self._spheres[None]
        self._row = (self._free < program.simplex).astype(np.float64)[:, None][:, : min(program.simplex, 1)]

    def run(self, y: Vector) -> tuple[Vector, Vector, Vector, Vector] | None:
        """The answer, its slopes, the level of those on the simplex, and the multipliers of spheres; None without any."""
        program, free, mine = self._program, self._free, self._mine
        y = np.where(self._pressed < 0, program.lower, np.where(self._pressed > 0, program.upper, y))
        radii = program.radii[self._spheres]
        slope = program.matrix @ y + program.linear
        parts = mine * y[free, None]
        multipliers = -(parts.T @ slope[free]) / radii**2
        level = -float(slope[: program.simplex].min()) if program.simplex else 0.0
        diagonal = program.matrix.diagonal()
        ridge = (RIDGE * (diagonal + RIDGE * diagonal.max(initial=0.0)) + np.finfo(float).tiny)[free]
        own, best, taken = program.matrix[free[:, None], free], np.inf, None
        for _ in range(MOST_NEWTON_STEPS):
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
            if error < best:
                spread = np.zeros(len(program.radii))
                spread[self._spheres] = multipliers
                levels = np.zeros(len(y))
                levels[: program.simplex] = level
                best, taken = error, (y.copy(), slope, levels, spread)
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
        return taken if best <= EXACT else None
