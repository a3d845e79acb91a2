"""Solve quadratic programs by a chain of solvers; the residual of every solution is checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.ball_program import BallProgram
from nonsmooth.errors import QPError
from nonsmooth.native import Method, load
from nonsmooth.qp.active_set import active_set
from nonsmooth.qp.backends import MODULES, ONE_SHOT, Daqp, is_installed
from nonsmooth.qp.balls import solve_with_balls
from nonsmooth.qp.native import MAX_NATIVE_ENTRIES, Kernel
from nonsmooth.qp.product import Product
from nonsmooth.qp.program import FixedRow, Program, Solution
from nonsmooth.qp.projected_newton import projected_newton
from nonsmooth.qp.workspace import Workspace
from nonsmooth.report.clock import Clock, Phase

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ACCEPTABLE_RESIDUALS = (1e-7, 1e-6, 1e-5, 1e-4)
"""The largest acceptable relative residual after the first, second, … attempt. It grows, because further solvers take time."""
NAME_ONLY_SOLVERS = ("proxqp",)
"""Solvers that are used only if named: the last digits of their solutions depend on memory addresses, so runs would not be
reproducible."""
POLISHING_ROUNDS = 40
"""Maximum number of changes of the active set when the solution of another solver is improved."""
DAQP_RIDGES = (1e-11, 1e-9)
"""Multiples of the identity added to a scaled matrix for daqp, tried in turn: it needs a positive definite matrix."""
MIN_WARM_START_ENTRIES = 100
"""From this size on the active-set method runs first, warm-started if possible, because most active bounds stay the same."""


@dataclass
class Counts:
    """How many programs were solved, and how."""

    solved: int = 0
    polished: int = 0
    """Programs for which the active-set method improved an inaccurate solution of the first solver."""
    warm: int = 0
    """Programs that the warm-started active-set method solved without another solver."""
    second_solver: int = 0
    failed: int = 0


def available() -> tuple[str, ...]:
    """The names of the available solvers, in the order in which they are tried.

    >>> "native" in available()
    True
    """
    return tuple(name for name in ("daqp", "native", "proxqp", "osqp") if name == "native" or is_installed(name))


class QPSolver:
    """Solves programs with the requested solver, or with the installed ones.

    >>> solver = QPSolver()
    >>> solver.session(np.eye(2)).solve(np.array([-0.5, 1.0]), np.zeros(2), np.ones(2)).y
    array([0.5, 0. ])
    """

    def __init__(self, name: str = "auto", clock: Clock | None = None) -> None:
        if name not in ("auto", "native") and not is_installed(name):
            raise QPError(f"qp_solver={name!r} needs the package {MODULES[name]!r}: pip install {MODULES[name]}, or use 'auto'")
        self._name = name
        functions = load() if name in ("auto", "native") else None
        self.kernel = None if functions is None else Kernel(functions)
        self._workspace: Workspace | None = None
        self.counts = Counts()
        self.clock = clock or Clock()
        self.deadline = np.inf
        """When the run must end, in terms of `time.perf_counter`; long programs raise `OutOfTime` then."""
        self.timer = self.clock.phase(Phase.QP)

    @property
    def method(self) -> Method:
        """Whether the native library solves the programs, or Python does."""
        return "python" if self.kernel is None else "native"

    def workspace(self, size: int) -> Workspace | None:
        """The workspace for models with `size` variables in compiled code; None without compiled code."""
        if self.kernel is None:
            return None
        if self._workspace is None or self._workspace.size != size:
            self._workspace = Workspace(self.kernel.functions, size)
        return self._workspace

    def order(self, size: int, *, warm: bool) -> tuple[str, ...]:
        """The solvers in the order in which they are tried on a program; `warm` if there is a warm start."""
        if size < MIN_WARM_START_ENTRIES or not (self._name == "auto" or warm):
            return self._names
        return ("native", *(name for name in self._names if name != "native"))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The installed solvers, determined on first use: no solver is needed if compiled code solves every program."""
        others = tuple(name for name in available() if name not in (self._name, *NAME_ONLY_SOLVERS))
        return others if self._name == "auto" else (self._name, *others)

    @property
    def only_native(self) -> bool:
        """Whether the active-set method runs first for programs of any size."""
        return self._names[0] == "native"

    def session(self, matrix: Matrix | Product, simplex: int = 0, balls: NDArray[np.int64] | None = None) -> Session:
        """A session for several programs with the same matrix; `balls` are the ball numbers of entries, if there are balls."""
        return Session(self, matrix, simplex, balls)


class Session:
    """Programs with the same matrix, which is scaled and factorized once."""

    def __init__(
        self, solver: QPSolver, matrix: Matrix | Product, simplex: int, balls: NDArray[np.int64] | None = None
    ) -> None:
        self._balls = balls
        self._solver, self._matrix, self._simplex = solver, matrix, simplex
        self._daqp: dict[float, Daqp] = {}
        self._rest: Session | None = None
        if simplex == 1 and len(matrix) > 2 and balls is None:  # w = 1 is constant; the rest is a program over the box
            rest = np.arange(1, len(matrix))
            part = matrix.part(rest) if isinstance(matrix, Product) else matrix[1:, 1:]
            self._rest = Session(solver, part, 0)

    def solve(self, linear: Vector, lower: Vector, upper: Vector, start: Vector | None = None) -> Solution:
        """The best solution found; `start` warm-starts large programs.

        It is marked as not trusted if no solver reached a small residual.
        """
        with self._solver.timer:
            if self._balls is not None:
                return self._solve_with_balls(linear, lower, upper)
            return self._solve(linear, lower, upper, start)

    def _solve(
        self, linear: Vector, lower: Vector, upper: Vector, start: Vector | None, fixed_row: FixedRow | None = None
    ) -> Solution:
        matrix = self._matrix
        if self._rest is not None:
            if isinstance(matrix, Product):
                fixed_row = FixedRow(matrix.left[1:] @ matrix.right[0], float(matrix.left[0] @ matrix.right[0]))
            else:
                fixed_row = FixedRow(np.ascontiguousarray(matrix[1:, 0]), float(matrix[0, 0]))
            begin = None if start is None else start[1:]
            rest = self._rest._solve(linear[1:] + fixed_row.products, lower[1:], upper[1:], begin, fixed_row)
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
        if kernel is not None and size <= MAX_NATIVE_ENTRIES and not isinstance(matrix, Product):
            begin = start if start is not None else _feasible_start(lower, upper, self._simplex)
            result = kernel.solve(matrix, linear, lower, upper, self._simplex, begin, max_rounds(size), fixed_row)
            if result is not None and result[1] <= ACCEPTABLE_RESIDUALS[0]:
                counts.warm += start is not None
                return Solution(result[0], result[1], trusted=True)
        return self._solve_by_chain(Program(matrix, linear, lower, upper, self._simplex, fixed_row), start)

    def _solve_with_balls(self, linear: Vector, lower: Vector, upper: Vector) -> Solution:
        counts, balls = self._solver.counts, self._balls
        assert balls is not None
        counts.solved += 1
        matrix = self._matrix.dense() if isinstance(self._matrix, Product) else self._matrix
        program = BallProgram(matrix, linear, lower, upper, balls, self._simplex)
        solution = solve_with_balls(program, self._solver.deadline)
        counts.failed += not solution.trusted
        return solution

    def _solve_by_chain(self, program: Program, start: Vector | None) -> Solution:
        counts = self._solver.counts
        best: Vector | None = None
        best_residual = np.inf
        warm = start is not None and (program.size >= MIN_WARM_START_ENTRIES or self._solver.only_native)
        warm_start = program.feasible(start) if start is not None and warm else None
        for number, y in enumerate(self._solutions(program, warm_start)):
            residual = np.inf if y is None else program.residual(y)
            if residual < best_residual:
                best, best_residual = y, residual
            if best_residual <= ACCEPTABLE_RESIDUALS[min(number, 3)]:
                counts.warm += number == 0 and warm_start is not None
                break
        if best is None:
            best = _feasible_start(program.lower, program.upper, program.simplex)
            best_residual = program.residual(best)
        trusted = best_residual <= ACCEPTABLE_RESIDUALS[3]
        counts.failed += not trusted
        return Solution(best, best_residual, trusted)

    def _solutions(self, program: Program, warm_start: Vector | None) -> Iterator[Vector | None]:
        """One solution after another, each computed in a different way; `warm_start` is a warm start, if available."""
        counts = self._solver.counts
        for number, name in enumerate(self._solver.order(program.size, warm=warm_start is not None)):
            counts.second_solver += number == 1
            if name == "native":
                begin = _feasible_start(program.lower, program.upper, program.simplex) if warm_start is None else warm_start
                # The rank bounds the number of free entries at the solution; with few, the active-set method suffices.
                if program.rank > MAX_NATIVE_ENTRIES and not program.simplex:
                    begin = projected_newton(program, begin, deadline=self._solver.deadline)
                yield active_set(program, begin, rounds=max_rounds(program.size), deadline=self._solver.deadline)
                continue
            for attempt, raw in enumerate(self._external_solutions(name, program)):
                y = None if raw is None else program.feasible(raw)
                if y is not None and program.residual(y) > ACCEPTABLE_RESIDUALS[0]:
                    counts.polished += number == attempt == 0
                    y = active_set(program, y, rounds=POLISHING_ROUNDS)
                yield y

    def _external_solutions(self, name: str, program: Program) -> Iterator[Vector | None]:
        """The solutions of an external solver."""
        if name == "daqp":
            for ridge in DAQP_RIDGES:
                if ridge not in self._daqp:
                    self._daqp[ridge] = Daqp(program.dense, program.scale, self._simplex, ridge=ridge)
                yield self._daqp[ridge].solve(program)
            return
        try:
            yield ONE_SHOT[name](program)
        except Exception:  # treat any error of an external solver as a failure
            yield None


def max_rounds(size: int) -> int:
    """The maximum number of rounds of the active-set method for a program."""
    return 20 + 10 * size


def closed_form(program: Program) -> Vector | None:
    """The exact solution if at most one entry is free, None otherwise.

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


def _feasible_start(lower: Vector, upper: Vector, simplex: int) -> Vector:
    y = np.minimum(np.maximum(0.0, lower), upper)
    if simplex:
        y[0] = 1.0
    return y
