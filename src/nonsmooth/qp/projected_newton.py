"""Projected Newton steps for large programs over a box, in which many bounds change at a time (Bertsekas 1982).

Entries at a bound whose slopes push them against it are fixed; the others take a Newton step that is clipped to the box. If the
matrix of these is nearly singular, as with more rows than variables, a ridge shortens the step (Levenberg 1944). The value
decreases with every step; the active-set method then starts near the solution and makes it exact.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from nonsmooth.qp.active_set import OutOfTime
from nonsmooth.qp.program import Program

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_STEPS = 60
MAX_HALVINGS = 6
SUFFICIENT_DECREASE = 1e-4
MIN_RIDGE, MAX_RIDGE, RIDGE_FACTOR = 1e-10, 1e3, 1e3
"""Relative to the largest entry of the diagonal."""


def projected_newton(program: Program, y: Vector, *, deadline: float = np.inf) -> Vector:
    """A feasible point no worse than the feasible y, with nearly the same active bounds as the solution.

    Raises `OutOfTime` when `time.perf_counter` passes the deadline.

    >>> program = Program(np.eye(2), np.array([-0.5, -3.0]), np.zeros(2), np.ones(2))
    >>> projected_newton(program, np.zeros(2))
    array([0.5, 1. ])
    """
    slope = program.matrix @ y + program.linear
    relative, largest = MIN_RIDGE, float(program.diagonal.max(initial=0.0))
    for _ in range(MAX_STEPS):
        if perf_counter() > deadline:
            raise OutOfTime
        free = _free(program, y, slope)
        if not len(free):
            break
        step = _newton_step(program, free, slope, relative * largest)
        accepted = None if step is None else _search(program, y, slope, free, step)
        if accepted is None:
            relative *= RIDGE_FACTOR
            if relative > MAX_RIDGE:
                break
            continue
        y, slope, full_step, clipped = accepted
        if full_step and not clipped and relative == MIN_RIDGE and np.array_equal(_free(program, y, slope), free):
            break  # another step would change nothing
        relative = max(MIN_RIDGE, relative / RIDGE_FACTOR) if full_step else relative
    return y


def _free(program: Program, y: Vector, slope: Vector) -> Indices:
    at_bound = ((y <= program.lower) & (slope >= 0)) | ((y >= program.upper) & (slope <= 0))
    return np.nonzero(~at_bound)[0]


def _newton_step(program: Program, free: Indices, slope: Vector, ridge: float) -> Vector | None:
    block = program.block(free, free)
    block.flat[:: len(free) + 1] += ridge
    try:
        return np.asarray(solve(block, -slope[free], assume_a="pos", overwrite_a=True, check_finite=False))
    except np.linalg.LinAlgError:
        return None


class _Accepted(NamedTuple):
    y: Vector
    slope: Vector
    full_step: bool
    """Whether the step length was 1."""
    clipped: bool
    """Whether bounds shortened the step."""


def _search(program: Program, y: Vector, slope: Vector, free: Indices, step: Vector) -> _Accepted | None:
    """The first of the points y + 2⁻ᵏ · step, clipped to the box, with sufficient decrease; None if there is none."""
    value = 0.5 * float(y @ (slope + program.linear))
    for halvings in range(MAX_HALVINGS):
        trial, wanted = y.copy(), y[free] + 0.5**halvings * step
        trial[free] = np.clip(wanted, program.lower[free], program.upper[free])
        trial_slope = program.matrix @ trial + program.linear
        lowest = value + SUFFICIENT_DECREASE * float(slope @ (trial - y))
        if 0.5 * float(trial @ (trial_slope + program.linear)) <= lowest:
            return _Accepted(trial, trial_slope, halvings == 0, not np.array_equal(trial[free], wanted))
    return None
