"""One interface to the libraries that are compared. What a library is given is prepared before the clock starts.

All but ours get the program scaled to a unit diagonal, as `nonsmooth.qp.backends` gives it to them, and no upper bounds on
the simplex, whose entries are bounded by their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonsmooth.native import load
from nonsmooth.qp.native import Kernel
from nonsmooth.qp.solver import _feasible_start
from qp_comparison.recording import Recorded

TOLERANCE = 1e-9
MAX_SECONDS = 1.0
"""For one program, where a library takes a limit."""
INFINITE = 1e30


@dataclass(frozen=True)
class Scaled:
    """A program in the units of its diagonal."""

    matrix: Any
    linear: Any
    lower: Any
    upper: Any
    row: Any
    """Of the equality Σ = 1, of shape (0, n) without a simplex."""
    total: Any
    start: Any
    number: int

    @classmethod
    def of(cls, recorded: Recorded, ridge: float = 0.0, infinite: float = np.inf) -> Scaled:
        """From a recorded one."""
        program = recorded.program
        inverse, size = 1.0 / program.scale, program.size
        matrix = program.dense * inverse[:, None] * inverse[None, :]
        row = np.zeros((1 if program.simplex else 0, size))
        row[:, : program.simplex] = inverse[: program.simplex]
        upper = program.upper / inverse
        upper[: program.simplex] = infinite
        start = _feasible_start(program.lower, program.upper, program.simplex) if recorded.start is None else recorded.start
        return cls(
            np.ascontiguousarray(0.5 * (matrix + matrix.T) + ridge * np.eye(size)), program.linear * inverse,
            program.lower / inverse, upper, row, np.ones(len(row)), start / inverse, recorded.matrix,
        )  # fmt: skip


class Native:
    """The active-set method of the native library, called from Python as the others are."""

    package = "compile-inspect"
    warm = "start"

    def __init__(self) -> None:
        functions = load()
        assert functions is not None
        self._kernel = Kernel(functions)

    def prepare(self, recorded: Recorded) -> Any:
        program = recorded.program
        return recorded, _feasible_start(program.lower, program.upper, program.simplex)

    def solve(self, prepared: Any, *, warm: bool) -> Any:
        recorded, corner = prepared
        program = recorded.program
        start = recorded.start if warm and recorded.start is not None else corner
        if not warm:
            self._kernel._matrix = None
        solution = self._kernel.solve(
            program.matrix, program.linear, program.lower, program.upper, program.simplex, start, 20 + 10 * program.size,
            program.fixed_row,
        )  # fmt: skip
        return None if solution is None else solution[0]

    def answer(self, prepared: Any, raw: Any) -> Any:
        return raw


class Other:
    """What the libraries have in common: an object for each matrix, which is kept for the programs that share it."""

    package = ""
    warm = "setup"
    ridge = 0.0
    infinite = np.inf

    def __init__(self) -> None:
        self._number, self._solver = -1, None

    def prepare(self, recorded: Recorded) -> Any:
        return Scaled.of(recorded, self.ridge, self.infinite), 1.0 / recorded.program.scale

    def solve(self, prepared: Any, *, warm: bool) -> Any:
        scaled = prepared[0]
        if warm and self._solver is not None and scaled.number == self._number:
            return self.update(self._solver, scaled)
        self._number = scaled.number
        self._solver, raw = self.setup(scaled, warm)
        return raw

    def answer(self, prepared: Any, raw: Any) -> Any:
        return None if raw is None else np.asarray(raw, dtype=np.float64).reshape(-1) * prepared[1]

    def setup(self, scaled: Scaled, warm: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def update(self, solver: Any, scaled: Scaled) -> Any:
        raise NotImplementedError


class Daqp(Other):
    """A dual active-set method."""

    package, warm, ridge, infinite = "daqp", "start and setup", 1e-11, INFINITE

    def prepare(self, recorded: Recorded) -> Any:
        scaled, inverse = super().prepare(recorded)
        bounds = np.concatenate([scaled.upper, scaled.total]), np.concatenate([scaled.lower, scaled.total])
        sense = np.zeros(len(bounds[0]), dtype=np.int32)
        sense[len(scaled.linear) :] = 5
        return scaled, inverse, bounds, sense

    def solve(self, prepared: Any, *, warm: bool) -> Any:
        import daqp

        scaled, _, (upper, lower), sense = prepared
        if warm and self._solver is not None and scaled.number == self._number:
            self._solver.update(f=scaled.linear, bupper=upper, blower=lower)
        else:
            self._solver, self._number = daqp.Model(), scaled.number
            self._solver.settings = {"primal_tol": TOLERANCE, "iter_limit": 10_000}
            started = {"primal_start": scaled.start} if warm else {}
            if self._solver.setup(scaled.matrix, scaled.linear, scaled.row, upper, lower, sense, **started)[0] < 0:
                self._solver = None
                return None
        y, _, flag, _ = self._solver.solve()
        return y if flag > 0 else None


class Piqp(Other):
    """A proximal interior-point method."""

    package = "piqp"

    def prepare(self, recorded: Recorded) -> Any:
        scaled, inverse = super().prepare(recorded)
        object.__setattr__(scaled, "matrix", np.asfortranarray(scaled.matrix))
        object.__setattr__(scaled, "row", np.asfortranarray(scaled.row))
        return scaled, inverse

    def setup(self, scaled: Scaled, warm: bool) -> tuple[Any, Any]:
        import piqp

        solver = piqp.DenseSolver()
        solver.settings.eps_abs, solver.settings.eps_rel = TOLERANCE, 0.0
        solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = TOLERANCE, 0.0
        equality = (scaled.row, scaled.total) if len(scaled.row) else (None, None)
        solver.setup(scaled.matrix, scaled.linear, *equality, None, None, None, scaled.lower, scaled.upper)
        solver.solve()
        return solver, solver.result.x

    def update(self, solver: Any, scaled: Scaled) -> Any:
        solver.update(c=scaled.linear, x_l=scaled.lower, x_u=scaled.upper)
        solver.solve()
        return solver.result.x


class Clarabel(Other):
    """A homogeneous interior-point method for sparse conic programs."""

    package, warm = "clarabel", "no"

    def prepare(self, recorded: Recorded) -> Any:
        import clarabel
        from scipy import sparse

        scaled, inverse = super().prepare(recorded)
        bounded, size = np.isfinite(scaled.upper), len(scaled.linear)
        identity = sparse.identity(size, format="csr")
        rows = sparse.csc_matrix(sparse.vstack([sparse.csr_matrix(scaled.row), identity[bounded], -identity]))
        right = np.concatenate([scaled.total, scaled.upper[bounded], -scaled.lower])
        cones = [clarabel.ZeroConeT(1)] if len(scaled.row) else []
        cones.append(clarabel.NonnegativeConeT(len(right) - len(scaled.row)))
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit = False, MAX_SECONDS
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        data = sparse.csc_matrix(np.triu(scaled.matrix)), scaled.linear, rows, right, cones, settings
        return scaled, inverse, data

    def solve(self, prepared: Any, *, warm: bool) -> Any:
        import clarabel

        return clarabel.DefaultSolver(*prepared[2]).solve().x


class ProxQP(Other):
    """A proximal augmented Lagrangian method."""

    package, warm, infinite = "proxsuite", "start and setup", INFINITE

    def setup(self, scaled: Scaled, warm: bool) -> tuple[Any, Any]:
        from proxsuite import proxqp

        solver = proxqp.dense.QP(len(scaled.linear), len(scaled.row), 0, True)
        solver.settings.eps_abs, solver.settings.eps_rel = TOLERANCE, 0.0
        solver.settings.max_iter, solver.settings.max_iter_in = 50, 100
        solver.init(scaled.matrix, scaled.linear, scaled.row, scaled.total, None, None, None, scaled.lower, scaled.upper)
        if warm:
            solver.settings.initial_guess = proxqp.InitialGuess.WARM_START
            solver.solve(scaled.start, None, None)  # it takes no multipliers of bounds
        else:
            solver.solve()
        return solver, np.array(solver.results.x)

    def update(self, solver: Any, scaled: Scaled) -> Any:
        from proxsuite import proxqp

        solver.settings.initial_guess = proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
        solver.update(g=scaled.linear, l_box=scaled.lower, u_box=scaled.upper)
        solver.solve()
        return np.array(solver.results.x)


class Highs(Other):
    """The active-set method for convex programs of HiGHS, a library for linear and mixed-integer ones."""

    package, warm = "highspy", "no"

    def prepare(self, recorded: Recorded) -> Any:
        import highspy
        from scipy import sparse

        scaled, inverse = super().prepare(recorded)
        size = len(scaled.linear)
        model = highspy.HighsModel()
        model.lp_.num_col_, model.lp_.num_row_ = size, len(scaled.row)
        model.lp_.col_cost_, model.lp_.col_lower_, model.lp_.col_upper_ = scaled.linear, scaled.lower, scaled.upper
        model.lp_.row_lower_ = model.lp_.row_upper_ = scaled.total
        rows = sparse.csr_matrix(scaled.row)
        model.lp_.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.lp_.a_matrix_.start_, model.lp_.a_matrix_.index_ = rows.indptr, rows.indices
        model.lp_.a_matrix_.value_ = rows.data
        lower = sparse.csc_matrix(np.tril(scaled.matrix))
        model.hessian_.dim_, model.hessian_.format_ = size, highspy.HessianFormat.kTriangular
        model.hessian_.start_, model.hessian_.index_, model.hessian_.value_ = lower.indptr, lower.indices, lower.data
        return scaled, inverse, model

    def solve(self, prepared: Any, *, warm: bool) -> Any:
        import highspy

        if self._solver is None:
            self._solver = highspy.Highs()
            for name, value in {"output_flag": False, "time_limit": MAX_SECONDS, "threads": 1}.items():
                self._solver.setOptionValue(name, value)
            for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
                self._solver.setOptionValue(name, TOLERANCE)
        self._solver.clearModel()
        self._solver.passModel(prepared[2])
        self._solver.run()
        values = self._solver.getSolution().col_value
        return values if len(values) == len(prepared[1]) else None


LIBRARIES = {"native": Native, "daqp": Daqp, "PIQP": Piqp, "Clarabel": Clarabel, "ProxQP": ProxQP, "HiGHS": Highs}
