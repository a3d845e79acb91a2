"""Independent answers from scipy, which only these functions need."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .case import Case, lifted
from .cases import ALL
from .constrained import basis_pursuit_data
from .data import lasso_data


def reference() -> dict[str, float]:
    """Optimal values of the convex cases that a linear or quadratic program solves exactly."""
    from scipy.optimize import linprog, lsq_linear

    matrix, truth = (data.numpy() for data in basis_pursuit_data())
    program = linprog(np.ones(80), A_eq=np.hstack([matrix, -matrix]), b_eq=matrix @ truth)

    signal = lasso_data().reshape(-1).numpy()
    difference = np.diff(np.eye(signal.size), axis=0)
    dual = lsq_linear(difference.T, 2 * signal, bounds=(-0.5, 0.5), method="bvls", tol=1e-16).x
    lasso = dual @ difference @ signal - 0.25 * ((difference.T @ dual) ** 2).sum()

    return {"basis_pursuit": float(program.fun), "generalized_lasso": float(lasso)}


def solve(case: Case, start: Tensor | None = None) -> tuple[float, float, Tensor]:
    """f, violation and x by SLSQP, of a smooth case or the lifted form of a minimax one."""
    from scipy.optimize import minimize

    problem = case if case.smooth else lifted(case)
    x = (problem.initial() if start is None else start).numpy()

    def value(output: int, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
        result = problem.function(torch.from_numpy(x))[output]
        assert result is not None
        return sign * result.numpy()

    def jacobian(output: int, x: np.ndarray, sign: float = 1.0) -> np.ndarray:
        return sign * torch.func.jacrev(lambda point: problem.function(point)[output])(torch.from_numpy(x)).numpy()

    constraints = []
    if problem.inequalities:
        constraints.append({"type": "ineq", "fun": lambda x: value(1, x, -1.0), "jac": lambda x: jacobian(1, x, -1.0)})
    if problem.equalities:
        constraints.append({"type": "eq", "fun": lambda x: value(2, x), "jac": lambda x: jacobian(2, x)})
    for _ in range(2):
        x = minimize(
            lambda x: float(value(0, x)),
            x,
            jac=lambda x: jacobian(0, x),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 2000},
        ).x
    answer = torch.from_numpy(x[: case.n])
    return float(case.objective(answer)), case.violation(answer), answer


SHIFTED_STARTS = {"hs61": (5.0, -2.0, 3.0), "stiefel_trace": None}
"""Where SLSQP cannot begin at the usual start; None where its linearized constraints are always dependent."""


def confirmable() -> dict[str, Case]:
    """The cases that `solve` can be asked about."""
    kept = {name: case for name, case in ALL.items() if case.smooth or case.pieces is not None}
    return {name: case for name, case in kept.items() if SHIFTED_STARTS.get(name, ()) is not None}
