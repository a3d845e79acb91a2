"""Sharpen an approximate answer by a primal active-set method that starts from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from nonsmooth.qp.program import Program

Vector = NDArray[np.float64]


def polish(program: Program, y: Vector, *, rounds: int | None = None, enough: float = 1e-9) -> Vector:
    """A point at least as good as the feasible y, exact up to rounding if the rounds suffice.

    Solvers stop at an absolute accuracy. Near a solution of the outer problem the programs become so small that this
    is not enough. Here the entries between their bounds are solved for directly, also where Q is singular; the way
    there is followed up to the first bound, which is then held; an entry whose slope points away from its bound is
    let go again.

    >>> program = Program(np.eye(2), np.array([-0.5, 1.0]), np.zeros(2), np.ones(2))
    >>> polish(program, np.array([0.49, 1e-12]))
    array([0.5, 0. ])
    """
    scale = program.scale
    near = 1e-9 * max(1.0, float(np.abs(y).max(initial=0.0)))
    snapped = program.feasible(
        np.where(y <= program.lower + near, program.lower, np.where(y >= program.upper - near, program.upper, y))
    )
    y = y if snapped is None else snapped
    best, best_residual = y, program.residual(y)
    held_low, held_high = y <= program.lower, y >= program.upper
    held_high &= ~held_low
    if program.simplex:
        held_high[: program.simplex] = False
    for _ in range(rounds if rounds is not None else 40):
        free = np.nonzero(~(held_low | held_high))[0]
        target = y.copy()
        if len(free):
            target[free] = _solve_free(program, np.where(held_low | held_high, y, 0.0), free, scale)
        y, blocked = _towards(program, y, target, held_low, held_high)
        residual = program.residual(y)
        if residual < best_residual:
            best, best_residual = y, residual
        if best_residual <= enough:
            break
        if blocked or not _release(program, y, held_low, held_high, scale):
            if not blocked:
                break
            continue
    return best


def _towards(
    program: Program, y: Vector, target: Vector, held_low: NDArray[np.bool_], held_high: NDArray[np.bool_]
) -> tuple[Vector, bool]:
    """Go from y to the target, or to the first bound on the way, which is then held."""
    way = target - y
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(way < 0, (program.lower - y) / way, np.where(way > 0, (program.upper - y) / way, np.inf))
    if program.simplex:
        upward = way[: program.simplex] > 0
        room[: program.simplex] = np.where(upward, np.inf, room[: program.simplex])
    room = np.where(held_low | held_high | ~np.isfinite(room), np.inf, np.maximum(room, 0.0))
    first = float(room.min(initial=np.inf))
    if first >= 1.0:
        return np.clip(target, program.lower, program.upper), False
    y = np.clip(y + first * way, program.lower, program.upper)
    for index in np.nonzero(room <= first * (1.0 + 1e-12))[0]:
        low = way[index] < 0
        y[index] = program.lower[index] if low else program.upper[index]
        (held_low if low else held_high)[index] = True
    return y, True


def _release(program: Program, y: Vector, held_low: NDArray[np.bool_], held_high: NDArray[np.bool_], scale: Vector) -> bool:
    """Let go of the entry whose slope points most strongly away from its bound; False if there is none."""
    slope = program.matrix @ y + program.linear
    if program.simplex:
        slope[: program.simplex] -= float(y[: program.simplex] @ slope[: program.simplex])
    wrong = np.where(held_low, -slope, np.where(held_high, slope, 0.0)) / scale
    worst = int(np.argmax(wrong))
    rounding = 1e-15 * float(np.abs(program.matrix[worst]) @ np.abs(y)) / scale[worst]
    if not wrong[worst] > rounding:
        return False
    held_low[worst] = held_high[worst] = False
    return True


def _solve_free(program: Program, fixed: Vector, free: NDArray[np.intp], scale: Vector) -> Vector:
    """The free entries that make their part of the gradient vanish (up to one shared value on the simplex)."""
    inverse = 1.0 / scale[free]
    matrix = program.matrix[np.ix_(free, free)] * inverse[:, None] * inverse[None, :]
    right = -(program.linear[free] + program.matrix[free] @ fixed) * inverse
    on_simplex = free < program.simplex
    quick = _solve_quickly(matrix, right, inverse, on_simplex, 1.0 - float(fixed[: program.simplex].sum()))
    if quick is not None:
        return quick * inverse
    if on_simplex.any():
        row = np.where(on_simplex, inverse, 0.0)
        length = float(np.linalg.norm(row))
        row /= length
        missing = 1.0 - float(fixed[: program.simplex].sum())
        matrix = np.block([[matrix, row[:, None]], [row[None, :], np.zeros((1, 1))]])
        right = np.concatenate([right, [missing / length]])
    # QR with pivoting: a singular system gets its basic solution, many times sooner than from a singular value one.
    solution = linalg.lstsq(matrix, right, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
    return np.asarray(solution[: len(free)] * inverse)


def _solve_quickly(
    matrix: NDArray[np.float64], right: Vector, inverse: Vector, on_simplex: NDArray[np.bool_], total: float
) -> Vector | None:
    """The same by Cholesky with a tiny ridge and two steps of refinement; None where that is not accurate."""
    try:
        factor = linalg.cho_factor(matrix + 1e-12 * np.eye(len(right)), check_finite=False)
    except linalg.LinAlgError:
        return None
    solution, shared = np.zeros(len(right)), 0.0
    row = np.where(on_simplex, inverse, 0.0)
    along = linalg.cho_solve(factor, row, check_finite=False)
    steepness = float(row @ along)
    error = right
    for _ in range(3):
        step = linalg.cho_solve(factor, error, check_finite=False)
        if steepness > 0:
            shift = (float(row @ (solution + step)) - total) / steepness
            step, shared = step - shift * along, shared + shift
        solution = np.asarray(solution + step)
        error = right - matrix @ solution - shared * row
        size = 1e-11 * max(float(np.abs(right).max()), float(np.abs(solution).max()), 1e-300)
        if float(np.abs(error).max()) <= size:
            return solution
    return None
