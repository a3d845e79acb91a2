"""Sharpen an approximate answer: guess which bounds hold, solve for the rest, correct the guess."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.program import Program

Vector = NDArray[np.float64]


def polish(program: Program, y: Vector, *, rounds: int = 12) -> Vector:
    """The best feasible point met by a few rounds of an active-set method started at y.

    Solvers stop at an absolute accuracy. Near a solution of the outer problem the programs become so small that this
    is not enough; solving for the free entries directly is exact up to rounding, also where Q is singular.

    >>> program = Program(np.eye(2), np.array([-0.5, 1.0]), np.zeros(2), np.ones(2))
    >>> polish(program, np.array([0.49, 1e-12]))
    array([0.5, 0. ])
    """
    best, best_residual = y, program.residual(y)
    scale = program.scale
    near = 1e-9 * max(1.0, float(np.abs(y).max(initial=0.0)))
    at_lower = y <= program.lower + near
    at_upper = (y >= program.upper - near) & ~at_lower
    for _ in range(rounds):
        if program.simplex and at_lower[: program.simplex].all():
            at_lower[int(np.argmin((program.matrix @ y + program.linear)[: program.simplex]))] = False
        free = ~(at_lower | at_upper)
        candidate = np.where(at_lower, program.lower, np.where(at_upper, program.upper, 0.0))
        if free.any():
            candidate[free] = _solve_free(program, candidate, np.nonzero(free)[0], scale)
        inside = program.feasible(candidate)
        if inside is None:
            break
        residual = program.residual(inside)
        if residual < best_residual:
            best, best_residual = inside, residual
        below, above = (candidate < program.lower) & free, (candidate > program.upper) & free
        y = inside
        if below.any() or above.any():
            at_lower |= below
            at_upper |= above
            continue
        slope = program.matrix @ inside + program.linear
        if program.simplex:
            weights = inside[: program.simplex]
            slope[: program.simplex] -= float(weights @ slope[: program.simplex])
        wrong = np.where(at_lower, -slope, np.where(at_upper, slope, 0.0)) / scale
        worst = int(np.argmax(wrong))
        if best_residual == 0.0 or wrong[worst] <= 0.0:
            break
        at_lower[worst] = at_upper[worst] = False
    return best


def _solve_free(program: Program, fixed: Vector, free: NDArray[np.intp], scale: Vector) -> Vector:
    """The free entries that make their part of the gradient vanish (up to one shared value on the simplex)."""
    inverse = 1.0 / scale[free]
    matrix = program.matrix[np.ix_(free, free)] * inverse[:, None] * inverse[None, :]
    right = -(program.linear[free] + program.matrix[free] @ fixed) * inverse
    on_simplex = free < program.simplex
    if on_simplex.any():
        row = np.where(on_simplex, inverse, 0.0)
        length = float(np.linalg.norm(row))
        row /= length
        matrix = np.block([[matrix, row[:, None]], [row[None, :], np.zeros((1, 1))]])
        right = np.concatenate([right, [1.0 / length]])
    solution = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
    solution += np.linalg.lstsq(matrix, right - matrix @ solution, rcond=1e-13)[0]  # one step of refinement
    return np.asarray(solution[: len(free)] * inverse)
