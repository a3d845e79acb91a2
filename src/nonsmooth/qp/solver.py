"""Solve quadratic programs by a chain of solvers; no answer is believed before it was checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.ball_program import BallProgram
from nonsmooth.errors import QPError
from nonsmooth.native import Method, load
from nonsmooth.qp.active import active_set
from nonsmooth.qp.backends import MODULES, ONE_SHOT, Daqp, installed
from nonsmooth.qp.balls import solve_with_balls
from nonsmooth.qp.native import MOST, Kernel
from nonsmooth.qp.product import Product
from nonsmooth.qp.program import Program, Pull, Solution
from nonsmooth.qp.projected_newton import projected_newton
from nonsmooth.qp.workspace import Workspace
from nonsmooth.report.clock import Clock, Phase

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ENOUGH = (1e-7, 1e-6, 1e-5, 1e-4)
"""The residual that is good enough after the first, second, … attempt: a later solver must be worth its time."""
ON_REQUEST = ("proxqp",)
"""Asked only by name: the last digits of its answers depend on where its matrices lie in memory, and so would the whole run."""
LARGE = 100
"""From this size on the active-set method begins, at an earlier answer where one is known: most entries will stay."""


@dataclass
class Counts:
    """How many programs were solved, and how well."""

    solved: int = 0
    polished: int = 0
    """The first solver's answer was not good enough, and was improved by the active-set method."""
    warm: int = 0
    """The active-set method needed no other solver, beginning at an earlier answer."""
    second_solver: int = 0
    failed: int = 0


def available() -> tuple[str, ...]:
    """Names of the solvers that can be used, in the order in which they are tried.

    >>> "native" in available()
    True
    """
    return tuple(name for name in ("daqp", "native", "proxqp", "osqp") if name == "native" or installed(name))


class QPSolver:
    """Solves programs with the solver asked for, or with whatever is installed.

    >>> solver = QPSolver()
    >>> solver.session(np.eye(2)).solve(np.array([-0.5, 1.0]), np.zeros(2), np.ones(2)).y
    array([0.5, 0. ])
    """

    def __init__(self, name: str = "auto", clock: Clock | None = None) -> None:
        if name not in ("auto", "native") and not installed(name):
            raise QPError(f"qp_solver={name!r} needs the package {MODULES[name]!r}: pip install {MODULES[name]}, or use 'auto'")
        self._name = name
        functions = load() if name in ("auto", "native") else None
        self.kernel = None if functions is None else Kernel(functions)
        self._workspace: Workspace | None = None
        self.counts = Counts()
        self.clock = clock or Clock()
        self.deadline = np.inf
        """When the run must end, by `time.perf_counter`; long programs raise `OutOfTime` then."""
        self.solving = self.clock.phase(Phase.QP)

    @property
    def method(self) -> Method:
        """Whether the native library solves the programs, or Python does."""
        return "python" if self.kernel is None else "native"

    def workspace(self, size: int) -> Workspace | None:
        """Where models of so many variables are put for compiled code; None where there is none."""
        if self.kernel is None:
            return None
        if self._workspace is None or self._workspace.size != size:
            self._workspace = Workspace(self.kernel.functions, size)
        return self._workspace

    def order(self, size: int, *, warm: bool) -> tuple[str, ...]:
        """The solvers in the order in which they are tried on a program, `warm` if an earlier answer is known."""
        if size < LARGE or not (self._name == "auto" or warm):
            return self._names
        return ("native", *(name for name in self._names if name != "native"))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Looked for when the first is needed: where the compiled method solves everything, none is."""
        others = tuple(name for name in available() if name not in (self._name, *ON_REQUEST))
        return others if self._name == "auto" else (self._name, *others)

    @property
    def only_native(self) -> bool:
        """Whether the active-set method comes first for programs of any size."""
        return self._names[0] == "native"

    def session(self, matrix: Matrix | Product, simplex: int = 0, balls: NDArray[np.int64] | None = None) -> Session:
        """A session for several programs with the same matrix; `balls` are those of its entries, where some lie in balls."""
        return Session(self, matrix, simplex, balls)


class Session:
    """Programs that share a matrix: it is scaled and factorized once."""

    def __init__(
        self, solver: QPSolver, matrix: Matrix | Product, simplex: int, balls: NDArray[np.int64] | None = None
    ) -> None:
        self._balls = balls
        self._solver, self._matrix, self._simplex = solver, matrix, simplex
        self._daqp: dict[float, Daqp] = {}
        self._rest: Session | None = None
        if simplex == 1 and len(matrix) > 2 and balls is None:  # a constant; what is left is a program over the box alone
            rest = np.arange(1, len(matrix))
            part = matrix.part(rest) if isinstance(matrix, Product) else matrix[1:, 1:]
            self._rest = Session(solver, part, 0)

    def solve(self, linear: Vector, lower: Vector, upper: Vector, start: Vector | None = None) -> Solution:
        """The best answer found, from a `start` where one is known and the program is large.

        It is marked as not trusted if no solver reached a small residual.
        """
        with self._solver.solving:
            if self._balls is not None:
                return self._solve_with_balls(linear, lower, upper)
            return self._solve(linear, lower, upper, start)

    def _solve(self, linear: Vector, lower: Vector, upper: Vector, start: Vector | None, pull: Pull | None = None) -> Solution:
        matrix = self._matrix
        if self._rest is not None:
            if isinstance(matrix, Product):
                pull = Pull(matrix.left[1:] @ matrix.right[0], float(matrix.left[0] @ matrix.right[0]))
            else:
                pull = Pull(np.ascontiguousarray(matrix[1:, 0]), float(matrix[0, 0]))
            begin = None if start is None else start[1:]
            rest = self._rest._solve(linear[1:] + pull.products, lower[1:], upper[1:], begin, pull)
            y = np.empty(len(linear))
            y[0], y[1:] = 1.0, rest.y
            return Solution(y, rest.residual, rest.trusted)
        counts = self._solver.counts
        counts.solved += 1
        size = len(linear)
        if size <= 2 and self._simplex <= 1 and size - self._simplex <= 1:
            exact = closed_form(Program(matrix, linear, lower, upper, self._simplex))
            if exact is not None:
                return Solution(exact, 0.0, trusted=True)
        kernel = self._solver.kernel
        if kernel is not None and size <= MOST and not isinstance(matrix, Product):
            begin = start if start is not None else _corner(lower, upper, self._simplex)
            found = kernel.solve(matrix, linear, lower, upper, self._simplex, begin, 20 + 10 * size, pull)
            if found is not None and found[1] <= ENOUGH[0]:
                counts.warm += start is not None
                return Solution(found[0], found[1], trusted=True)
        return self._by_the_chain(Program(matrix, linear, lower, upper, self._simplex, pull), start)

    def _solve_with_balls(self, linear: Vector, lower: Vector, upper: Vector) -> Solution:
        counts, balls = self._solver.counts, self._balls
        assert balls is not None
        counts.solved += 1
        matrix = self._matrix.dense() if isinstance(self._matrix, Product) else self._matrix
        found = solve_with_balls(BallProgram(matrix, linear, lower, upper, balls, self._simplex), self._solver.deadline)
        counts.failed += not found.trusted
        return found

    def _by_the_chain(self, program: Program, start: Vector | None) -> Solution:
        counts = self._solver.counts
        best: Vector | None = None
        best_residual = np.inf
        near = program.feasible(start) if start is not None and (program.size >= LARGE or self._solver.only_native) else None
        for number, y in enumerate(self._answers(program, near)):
            residual = np.inf if y is None else program.residual(y)
            if residual < best_residual:
                best, best_residual = y, residual
            if best_residual <= ENOUGH[min(number, 3)]:
                counts.warm += number == 0 and near is not None
                break
        if best is None:
            best = _corner(program.lower, program.upper, program.simplex)
            best_residual = program.residual(best)
        trusted = best_residual <= ENOUGH[3]
        counts.failed += not trusted
        return Solution(best, best_residual, trusted)

    def _answers(self, program: Program, near: Vector | None) -> Iterator[Vector | None]:
        """One answer after the other, each found in another way; `near` is where to begin, if that is known."""
        counts = self._solver.counts
        for number, name in enumerate(self._solver.order(program.size, warm=near is not None)):
            counts.second_solver += number == 1
            if name == "native":
                begin = _corner(program.lower, program.upper, program.simplex) if near is None else near
                if program.rank > MOST and not program.simplex:  # no more entries than that are free at the answer
                    begin = projected_newton(program, begin, deadline=self._solver.deadline)
                yield active_set(program, begin, rounds=20 + 10 * program.size, deadline=self._solver.deadline)
                continue
            for attempt, raw in enumerate(self._asked(name, program)):
                y = None if raw is None else program.feasible(raw)
                if y is not None and program.residual(y) > ENOUGH[0]:
                    counts.polished += number == attempt == 0
                    y = active_set(program, y, rounds=40)
                yield y

    def _asked(self, name: str, program: Program) -> Iterator[Vector | None]:
        """What another solver answers."""
        if name == "daqp":
            for ridge in (1e-11, 1e-9):
                if ridge not in self._daqp:
                    self._daqp[ridge] = Daqp(program.dense, program.scale, self._simplex, ridge=ridge)
                yield self._daqp[ridge].solve(program)
            return
        try:
            yield ONE_SHOT[name](program)
        except Exception:  # a solver that refuses, in whatever words, is one that failed
            yield None


def closed_form(program: Program) -> Vector | None:
    """The exact answer where at most one entry is free, None otherwise.

    >>> closed_form(Program(np.array([[2.0]]), np.array([-8.0]), np.zeros(1), np.ones(1)))
    array([1.])
    """
    if program.simplex > 1 or program.size - program.simplex > 1:
        return None
    y = np.ones(program.size)
    if program.size > program.simplex:
        last = program.size - 1
        slope = program.linear[last] + (program.dense[last, 0] if program.simplex else 0.0)
        steepness = program.diagonal[last]
        target = 0.0 if slope == 0 else -slope / steepness if steepness > 0 else -np.sign(slope) * np.inf
        y[last] = np.clip(target, program.lower[last], program.upper[last])
    return y


def _corner(lower: Vector, upper: Vector, simplex: int) -> Vector:
    y = np.minimum(np.maximum(0.0, lower), upper)
    if simplex:
        y[0] = 1.0
    return y
