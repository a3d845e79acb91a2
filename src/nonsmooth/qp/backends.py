"""External solvers, each imported only when it is used."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.program import Program

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MODULES = {"daqp": "daqp", "proxqp": "proxsuite", "osqp": "osqp", "gurobi": "gurobipy"}


def is_installed(name: str) -> bool:
    """Whether the solver of that name can be imported."""
    return importlib.util.find_spec(MODULES[name]) is not None


class Daqp:
    """A dual active-set solver. One object solves all programs with the same matrix; only changed data are passed."""

    def __init__(self, matrix: Matrix, scale: Vector, simplex: int, *, ridge: float) -> None:
        import daqp

        self._inverse, self._simplex = 1.0 / scale, simplex
        size = len(scale)
        scaled = matrix * self._inverse[:, None] * self._inverse[None, :]
        self._matrix = np.ascontiguousarray(0.5 * (scaled + scaled.T) + ridge * np.eye(size))
        self._row = np.zeros((1 if simplex else 0, size))
        if simplex:
            self._row[0, :simplex] = self._inverse[:simplex]
        self._daqp = daqp
        self._model = daqp.Model() if hasattr(daqp, "Model") else None  # older versions start from scratch every time
        self._ready = False

    def solve(self, program: Program) -> Vector | None:
        """The solution, or None if the solver failed."""
        linear = np.ascontiguousarray(program.linear * self._inverse)
        total = np.ones(len(self._row))
        upper = np.concatenate([program.upper / self._inverse, total])
        upper[: self._simplex] = 1e30  # the sum bounds these; redundant bounds at the same values confuse the solver
        lower = np.concatenate([program.lower / self._inverse, total])
        sense = np.zeros(len(upper), dtype=np.int32)
        sense[len(linear) :] = 5  # an equality
        if self._model is None:
            y, _, flag, _ = self._daqp.solve(self._matrix, linear, self._row, upper, lower, sense, primal_tol=1e-9)
            return np.asarray(y) * self._inverse if flag > 0 else None
        if not self._ready:
            self._model.settings = {"primal_tol": 1e-9, "iter_limit": 10_000}
            if self._model.setup(self._matrix, linear, self._row, upper, lower, sense)[0] < 0:
                return None
            self._ready = True
        elif self._model.update(f=linear, bupper=upper, blower=lower) < 0:
            return None
        y, _, flag, _ = self._model.solve()
        return np.asarray(y) * self._inverse if flag > 0 else None


def proxqp(program: Program) -> Vector | None:
    """A proximal augmented Lagrangian solver: slower, but robust for singular matrices."""
    from proxsuite import proxqp as solver

    inverse = 1.0 / program.scale
    equalities = 1 if program.simplex else 0
    work = solver.dense.QP(program.size, equalities, 0, True)
    work.settings.eps_abs, work.settings.eps_rel = 1e-9, 0.0
    work.settings.max_iter, work.settings.max_iter_in = 50, 100
    row = np.zeros((equalities, program.size))
    row[:, : program.simplex] = inverse[: program.simplex]
    matrix = program.dense * inverse[:, None] * inverse[None, :]
    work.init(
        matrix, program.linear * inverse, row, np.ones(equalities), None, None, None,
        program.lower / inverse, program.upper / inverse,
    )  # fmt: skip
    work.solve()
    return np.asarray(work.results.x) * inverse


def osqp(program: Program) -> Vector | None:
    """An operator-splitting solver."""
    import osqp as solver
    from scipy import sparse

    inverse = 1.0 / program.scale
    row = np.zeros((1 if program.simplex else 0, program.size))
    row[:, : program.simplex] = inverse[: program.simplex]
    matrix = program.dense * inverse[:, None] * inverse[None, :]
    if not np.isfinite(matrix).all() or float(np.linalg.eigvalsh(matrix)[0]) < -1e-7:
        return None  # OSQP would print an error even with verbose=False
    constraints = sparse.csc_matrix(np.concatenate([np.eye(program.size), row]))
    ones = np.ones(len(row))
    work = solver.OSQP()
    settings: dict[str, Any] = {"verbose": False, "eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 4_000}
    work.setup(
        sparse.csc_matrix(np.triu(0.5 * (matrix + matrix.T))), program.linear * inverse, constraints,
        np.concatenate([program.lower / inverse, ones]), np.concatenate([program.upper / inverse, ones]), **settings,
    )  # fmt: skip
    x = work.solve(raise_error=False).x
    return None if x is None or x[0] is None else np.asarray(x, dtype=np.float64) * inverse


def gurobi(program: Program) -> Vector | None:
    """A commercial barrier solver; used only on request."""
    import gurobipy

    inverse = 1.0 / program.scale
    matrix = program.dense * inverse[:, None] * inverse[None, :]
    with gurobipy.Env(empty=True) as environment:
        environment.setParam("OutputFlag", 0)
        environment.start()
        with gurobipy.Model(env=environment) as model:
            y = model.addMVar(program.size, lb=program.lower / inverse, ub=program.upper / inverse)
            model.setObjective(0.5 * (y @ (0.5 * (matrix + matrix.T)) @ y) + (program.linear * inverse) @ y)
            if program.simplex:
                model.addConstr(inverse[: program.simplex] @ y[: program.simplex] == 1.0)
            model.setParam("BarConvTol", 1e-12)
            model.setParam("OptimalityTol", 1e-9)
            model.optimize()
            return np.asarray(y.X) * inverse if model.SolCount else None


ONE_SHOT: dict[str, Callable[[Program], Vector | None]] = {"proxqp": proxqp, "osqp": osqp, "gurobi": gurobi}
