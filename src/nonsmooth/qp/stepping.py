"""Steps of a model in compiled code, where there is any: the program and what its answer says, in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.clock import Phase
from nonsmooth.qp.kernel import MOST, address
from nonsmooth.qp.solver import QPSolver

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Rows(NamedTuple):
    """What the rows of a model are: cuts, constraints, equalities first, and further linearisations of constraints."""

    errors: Vector
    """One for each cut."""
    hints: Vector
    """A weight for each cut that may be near the answer, all of them positive or 0."""
    values: Vector
    """One for each constraint and each further row."""
    own: int
    """How many constraints there are."""
    equalities: int
    owners: NDArray[np.intp]
    """Which constraint each further row belongs to."""
    signs: Vector
    """On which side of it."""


class Found(NamedTuple):
    """A step; see `Step`."""

    y: Vector
    direction: Vector
    gradient: Vector
    objective_gradient: Vector
    multipliers: Vector
    change: float
    violation: float
    error: float


class Stepper:
    """The steps of one model. `gradients` are its rows, `scaled` H times each of them, `matrix` their products."""

    def __init__(self, solver: QPSolver, gradients: Matrix, scaled: Matrix, matrix: Matrix, rows: Rows) -> None:
        assert solver.kernel is not None
        self._solver, self._kernel = solver, solver.kernel
        self._own, (self._total, self._size) = rows.own, gradients.shape
        cuts, further = len(rows.errors), len(rows.owners)
        data = np.concatenate([rows.errors, rows.hints, rows.values, rows.signs])
        # As long as these are held, their addresses are theirs.
        self._held = (np.ascontiguousarray(matrix), np.ascontiguousarray(gradients), np.ascontiguousarray(scaled), data)
        self._owners = rows.owners
        owners = address(rows.owners) if further else None
        self._arguments = (*map(address, self._held), self._size, cuts, rows.own, further, rows.equalities, owners)
        self._values = self._arguments[3] + 8 * 2 * cuts
        self._last: tuple[Vector, int] | None = None

    def step(self, weight: float, asked: Vector | None, start: Vector, limit: float) -> Found | None:
        """The step for a penalty weight, or None where the program is better left to others.

        `asked` replaces the values of the constraints in the program; `start` is where it begins, an answer for the weight
        `limit`.
        """
        total, size, own, kernel = self._total, self._size, self._own, self._kernel
        out = np.empty(total + 3 * size + own + 5)
        values = self._values if asked is None else address(asked)
        begin = address(start) if self._last is None or self._last[0] is not start else self._last[1]
        place = address(out)
        found = kernel.step(kernel.memory(total), *self._arguments, values, begin, limit, weight, place, kernel.factorise)
        change, violation, error, _, seconds = out[-5:].tolist()
        self._solver.clock.credit(Phase.QP, seconds)
        if not found:
            return None
        self._solver.counts.solved += 1
        self._solver.counts.warm += total > 2
        a, b, c, d = total + size, total + 2 * size, total + 3 * size, total + 3 * size + own
        self._last = (out[:total], place)
        return Found(self._last[0], out[total:a], out[a:b], out[b:c], out[c:d], change, violation, error)


def fits(solver: QPSolver, total: int) -> bool:
    """Whether compiled code is there, and good for models with so many gradients."""
    return solver.kernel is not None and total <= MOST
