"""The problems solved by others: cvxpy with Clarabel where they are convex, IPOPT where their kinks were split by hand."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composite.families import Convex, Function, Split
from nonsmooth.evaluate.problem_reading import concatenate_constraints, read_problem
from nonsmooth.structure import Arguments, summarize
from nonsmooth.variables import Variables

NEAR = 1e-5
"""Distance from a kink within which an answer of an interior-point method lies on it."""


def solve_by_cvxpy(function: Function, start: Tensor, form: Convex) -> dict[str, Any]:
    """Solve a convex problem by cvxpy with Clarabel; its time includes that of bringing it into its form."""
    import cvxpy

    x = cvxpy.Variable(tuple(start.shape))
    objective, constraints = form.program(cvxpy, x)
    began = perf_counter()
    task = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
    task.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return _told("Clarabel", task.status, function, torch.from_numpy(x.value), perf_counter() - began)


def solve_by_ipopt(function: Function, start: Tensor, form: Split) -> dict[str, Any]:
    """Solve a split problem by IPOPT with exact second derivatives; its time is that of the solver alone."""
    import casadi

    variables, objective, positive, zero = form.variables(casadi)
    program = {"x": variables, "f": objective, "g": casadi.vertcat(positive, zero)}
    quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-10}
    solver = casadi.nlpsol("solver", "ipopt", program, quiet)
    count = positive.shape[0]
    upper = np.concatenate([np.full(count, np.inf), np.zeros(zero.shape[0])])
    began = perf_counter()
    solution = solver(x0=form.start(start).numpy(), lbg=0.0, ubg=upper)
    seconds = perf_counter() - began
    flat = torch.from_numpy(np.asarray(solution["x"]).reshape(-1))
    if start.dim() == 2:  # plus and minus parts, by columns
        parts = flat.reshape(2, *start.T.shape)
        answer = (parts[0] - parts[1]).T.contiguous()
    else:
        answer = flat[: start.numel()].reshape(start.shape)
    return _told("IPOPT", solver.stats()["return_status"], function, answer, seconds)


def _told(name: str, status: str, function: Function, answer: Tensor, seconds: float) -> dict[str, Any]:
    """The objective is that of the function itself at the answer."""
    value = function(answer)
    f = float(value[0] if isinstance(value, tuple) else value)
    return {"name": name, "status": status, "f": f, "seconds": seconds, "active": kinks_near(function, answer)}


def kinks_near(function: Function, x: Tensor) -> int:
    """On how many kinks x lies, as far as an interior-point method tells."""
    variables, arguments = Variables(x), Arguments()
    argument, leaves = variables.place(variables.start)
    with arguments:
        value = function(argument)
    f, inequalities, equalities = value if isinstance(value, tuple) else (value, None, None)
    reading = read_problem(f, concatenate_constraints(equalities, inequalities), leaves, variables, arguments)
    return summarize(reading, arguments, followed=True, radius=NEAR).active
