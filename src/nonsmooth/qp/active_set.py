"""A primal active-set method: exact, and cheap if it starts near the solution.

Entries are either at a bound or free. The free entries move to where their part of the gradient vanishes, or to the first bound
on the way, which becomes active. When they arrive, the entry at a bound whose slope points most strongly away from the bound
becomes free. The factor of the free entries' matrix is updated with each change.

On a simplex the sum of the weights w is 1, so adding ½σ(Σw)² to the objective changes nothing. It makes the matrix of the free
entries definite if only its restriction to Σw = 0 is, as at a kink where gradients cancel.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.factor import Factor
from nonsmooth.qp.program import Program

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

REFINEMENTS = 3
"""The number of refinements of the free entries with the same factor."""


class OutOfTime(Exception):  # noqa: N818 (control flow, not an error for users)
    """The run's time limit was reached within a quadratic program."""


def active_set(program: Program, y: Vector, *, rounds: int, enough: float = 1e-9, deadline: float = np.inf) -> Vector:
    """A point at least as good as the feasible y, and a solution up to rounding if the rounds suffice.

    Raises `OutOfTime` when `time.perf_counter` passes the deadline.

    >>> program = Program(np.eye(2), np.array([-0.5, 1.0]), np.zeros(2), np.ones(2))
    >>> active_set(program, np.array([0.49, 1e-12]), rounds=10)
    array([0.5, 0. ])
    """
    return _Search(program, y).run(rounds, enough, deadline)


class _Search:
    """The state of an active-set search."""

    def __init__(self, program: Program, y: Vector) -> None:
        self.program, self.simplex = program, program.simplex
        near = 1e-9 * max(1.0, float(np.abs(y).max(initial=0.0)))
        snapped = program.feasible(
            np.where(y <= program.lower + near, program.lower, np.where(y >= program.upper - near, program.upper, y))
        )
        self.y = y.copy() if snapped is None else snapped
        self.upper = program.upper.copy()
        self.upper[: self.simplex] = np.inf  # the sum bounds these
        self.low = self.y <= program.lower
        self.high = (self.y >= self.upper) & ~self.low
        self.free: Indices = np.nonzero(~(self.low | self.high))[0]
        self.row = (self.free < self.simplex).astype(np.float64)
        """1 for the free entries of the simplex, else 0."""
        # Zero gradients get a tiny diagonal entry, which only keeps steps finite.
        largest = float(program.diagonal.max(initial=0.0))
        self.diagonal = np.maximum(program.diagonal, 1e-20 * (largest if largest > 0 else 1.0))
        squares = self.diagonal[: self.simplex]
        likely = squares[squares > 1e-12 * squares.max()] if self.simplex else squares[:0]
        self.sigma = float(np.median(likely)) if len(likely) else 0.0
        self.factor = Factor(len(self.free) + 16)
        self._refresh()
        self._rebuild()

    def _refresh(self) -> None:
        """Recompute the slopes from y, because their incremental updates drift."""
        self.slope = self.program.matrix @ self.y + self.program.linear

    def _rebuild(self) -> None:
        matrix = self.program.block(self.free, self.free)
        np.fill_diagonal(matrix, self.diagonal[self.free])
        self.factor.rebuild(matrix + self.sigma * np.outer(self.row, self.row))

    def run(self, rounds: int, enough: float, deadline: float) -> Vector:
        """Search until the optimality conditions hold or the rounds are used up."""
        program, start = self.program, self.y.copy()
        refinements, fresh = 0, True
        for _ in range(rounds):
            if deadline < np.inf and perf_counter() > deadline:
                raise OutOfTime
            if self._advance():
                refinements, fresh = 0, False
                continue
            excess = self._excess()
            wrong = np.where(self.low, -excess, np.where(self.high, excess, 0.0))
            worst = int(np.argmax(wrong))
            unsolved = float(np.abs(excess[self.free]).max(initial=0.0))
            allowed = enough * self._size()
            if max(wrong[worst], unsolved) <= allowed or not wrong[worst] > 1e-15 * float(program.scale @ np.abs(self.y)):
                if fresh or refinements > REFINEMENTS:
                    break
                self._refresh()
                if refinements:  # the factor drifts too
                    self._rebuild()
                refinements, fresh = refinements + 1, True
            elif unsolved > max(allowed, wrong[worst]) and refinements < REFINEMENTS:
                refinements += 1
            else:
                self._release(worst)
                refinements, fresh = 0, False
        y = program.feasible(self.y)
        residual = np.inf if y is None else program.residual(y)
        return y if y is not None and (residual <= enough or residual <= program.residual(start)) else start

    def _excess(self) -> Vector:
        """The slopes in the units of `residual`; on the simplex relative to their weighted mean."""
        if not self.simplex:
            return self.slope / self.program.scale
        excess, weights = self.slope.copy(), self.y[: self.simplex]
        total = float(weights.sum())  # 0 if the matrix is so ill-conditioned that steps are rounding errors
        excess[: self.simplex] -= float(weights @ self.slope[: self.simplex]) / total if total > 0 else np.nan
        excess /= self.program.scale
        return excess

    def _size(self) -> float:
        """The square root of the objective, to which residuals are relative."""
        linear = float(self.program.linear @ self.y)
        return self.program.measure(self.y, float(self.slope @ self.y) - linear, linear)

    def _advance(self) -> bool:
        """Move toward the minimum over the free entries; whether a bound stopped the step."""
        free = self.free
        if not len(free):
            return False
        if self.simplex:
            down, along = self.factor.solve(np.array([self.slope[free], self.row]).T).T
            steepness = float(self.row @ along)
            step = (float(self.row @ down) / steepness if steepness > 0 else 0.0) * along - down
        else:
            step = -self.factor.solve(self.slope[free])
        values, bound = self.y[free], np.where(step < 0, self.program.lower[free], self.upper[free])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lengths = np.where(step != 0, (bound - values) / step, np.inf)
        position = int(np.argmin(lengths))
        length = min(1.0, max(0.0, float(lengths[position])))
        self.y[free] = values + length * step
        self.slope += self.program.combined(free, length * step)
        if not lengths[position] < 1.0:
            return False
        self._activate(position, low=bool(step[position] < 0))
        return True

    def _activate(self, position: int, *, low: bool) -> None:
        """Fix a free entry at its bound."""
        entry = self.free[position]
        self.y[entry] = self.program.lower[entry] if low else self.upper[entry]
        (self.low if low else self.high)[entry] = True
        rest = np.arange(len(self.free)) != position
        self.free, self.row = self.free[rest], self.row[rest]
        if not self.factor.delete(position):
            self._rebuild()

    def _release(self, entry: int) -> None:
        """Free an entry from its bound."""
        mine = float(entry < self.simplex)
        column = self.program.block(self.free, np.array([entry]))[:, 0] + self.sigma * mine * self.row
        self.factor.append(column, float(self.diagonal[entry]) + self.sigma * mine)
        self.low[entry] = self.high[entry] = False
        self.free, self.row = np.append(self.free, entry), np.append(self.row, mine)
