"""How each solver is called. Every function imports its solver itself and returns how the run ended, in words."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from recorder import Recorder
from torch import Tensor

MANY_ITERATIONS = 10_000


def run_nonsmooth(recorder: Recorder) -> str:
    """Default options."""
    from nonsmooth import minimize

    result = minimize(recorder, recorder.case.initial(), max_iterations=MANY_ITERATIONS)
    if result.exception is not None:
        return f"{result.status.name}: {result.exception!r}"
    return result.status.name if result.success else f"{result.status.name} (not proven)"


def run_pygranso(recorder: Recorder, tolerance: float = 1e-8) -> str:
    """Default options but for the number of iterations and less printing (its default opt_tol is 1e-8)."""
    from pygranso.pygranso import pygranso
    from pygranso.pygransoStruct import pygransoStruct

    def struct(values: Tensor | None) -> Any:
        if values is None:
            return None
        struct = pygransoStruct()
        struct.c1 = values.reshape(-1, 1)
        return struct

    def function(variables: Any) -> list[Any]:
        f, inequality, equality = recorder(variables.x.reshape(-1))
        return [f, struct(inequality), struct(equality)]

    options = pygransoStruct()
    options.torch_device = torch.device("cpu")
    options.x0 = recorder.case.initial().reshape(-1, 1)
    options.maxit, options.opt_tol = MANY_ITERATIONS, tolerance
    options.print_level = 0
    options.quadprog_info_msg = options.prescaling_info_msg = False
    solution = pygranso(var_spec={"x": [recorder.case.n, 1]}, combined_fn=function, user_opts=options)
    return f"code {solution.termination_code}"


def run_pygranso_tight(recorder: Recorder) -> str:
    """The same, but it does not stop by itself before it has to."""
    return run_pygranso(recorder, tolerance=1e-14)


def run_ncopt(recorder: Recorder) -> str:
    """Default options but for the number of iterations and assertions that would end a run early.

    It asks for f, ci and ce separately and samples points for each. Functions known to be smooth are declared so, which
    spares it the samples. A problem without constraints gets one that always holds, because 0.2.0 cannot do without.
    """
    from ncopt.functions import ObjectiveOrConstraint
    from ncopt.sqpgs import SQPGS

    class Rows(torch.autograd.Function):
        """One part of the problem at each row of x, with its Jacobian; within vmap too, where rows are counted all the same."""

        @staticmethod
        def forward(x: Tensor, part: str) -> tuple[Tensor, Tensor]:
            values, jacobians = [], []
            for row in x.reshape(-1, x.shape[-1]):
                with torch.enable_grad():
                    leaf = row.detach().clone().requires_grad_()
                    value = chosen(recorder(leaf, part), part)
                    gradients = [
                        torch.autograd.grad(entry, leaf, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
                        for entry in value
                        if entry.requires_grad
                    ]
                values.append(value.detach())
                jacobians.append(torch.stack(gradients) if gradients else torch.zeros(len(value), len(row)))
            return torch.stack(values).reshape(*x.shape[:-1], -1), torch.stack(jacobians).reshape(
                *x.shape[:-1], -1, x.shape[-1]
            )

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
            (jacobian,) = ctx.saved_tensors
            return (gradients[0].unsqueeze(-2) @ jacobian).squeeze(-2), None

        @staticmethod
        def vmap(info: Any, dimensions: tuple[Any, ...], x: Tensor, part: str) -> tuple[Any, Any]:
            return Rows.apply(x.movedim(dimensions[0], 0), part), (0, 0)

    class Part(torch.nn.Module):
        def __init__(self, part: str) -> None:
            super().__init__()
            self.part = part

        def forward(self, x: Tensor) -> Tensor:
            return Rows.apply(x, self.part)[0]

    class Holds(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 0.0 * x[:, :1] - 1.0

    def chosen(values: tuple[Tensor, Tensor | None, Tensor | None], part: str) -> Tensor:
        return torch.cat([values[("f", "ci", "ce").index(part)].reshape(-1)])

    def wrapped(part: str, size: int) -> Any:
        return ObjectiveOrConstraint(
            Part(part), dim=case.n, dim_out=size, dtype=torch.float64, is_differentiable=case.smooth
        )  # fmt: skip

    torch.set_default_dtype(torch.float64)  # it samples in the default type
    case = recorder.case
    inequalities = [wrapped("ci", case.inequalities)] if case.inequalities else []
    equalities = [wrapped("ce", case.equalities)] if case.equalities else []
    if not inequalities and not equalities:
        inequalities = [ObjectiveOrConstraint(Holds(), dim=case.n, dim_out=1, dtype=torch.float64, is_differentiable=True)]
    problem = SQPGS(
        wrapped("f", 1), inequalities, equalities, x0=case.initial().numpy(), max_iter=MANY_ITERATIONS, verbose=False,
        assert_tol=np.inf,
    )  # fmt: skip
    problem.solve()
    return str(problem.status)


def run_slsqp(recorder: Recorder) -> str:
    """scipy's SLSQP with exact gradients and a small tolerance; for smooth problems only."""
    from scipy.optimize import minimize

    known: dict[bytes, tuple[Any, ...]] = {}

    def at(x: np.ndarray) -> tuple[Any, ...]:
        key = x.tobytes()
        if key not in known:
            known.clear()  # the same point is asked for again only right away
            leaf = torch.from_numpy(x.copy()).requires_grad_()
            values = recorder(leaf)
            known[key] = tuple(None if part is None else (part.detach().numpy(), jacobian(part, leaf)) for part in values)
        return known[key]

    def jacobian(values: Tensor, leaf: Tensor) -> np.ndarray:
        rows = [
            torch.autograd.grad(entry, leaf, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
            for entry in values.reshape(-1)
        ]
        return torch.stack(rows).numpy()

    case = recorder.case
    constraints = []
    if case.inequalities:
        constraints.append({"type": "ineq", "fun": lambda x: -at(x)[1][0], "jac": lambda x: -at(x)[1][1]})
    if case.equalities:
        constraints.append({"type": "eq", "fun": lambda x: at(x)[2][0], "jac": lambda x: at(x)[2][1]})
    result = minimize(
        lambda x: float(at(x)[0][0]), case.initial().numpy(), jac=lambda x: at(x)[0][1][0], method="SLSQP",
        constraints=constraints, options={"maxiter": MANY_ITERATIONS, "ftol": 1e-12},
    )  # fmt: skip
    return str(result.message)


SOLVERS: dict[str, tuple[Callable[[Recorder], str], tuple[str, ...]]] = {
    "nonsmooth": (run_nonsmooth, ("torch", "numpy", "daqp", "osqp", "proxsuite")),
    "pygranso": (run_pygranso, ("pygranso", "torch", "numpy", "osqp")),
    "pygranso_tight": (run_pygranso_tight, ("pygranso", "torch", "numpy", "osqp")),
    "ncopt": (run_ncopt, ("ncopt", "torch", "numpy", "osqp")),
    "slsqp": (run_slsqp, ("scipy", "torch", "numpy")),
}


def versions(solver: str) -> dict[str, str]:
    """The versions of what a solver runs on, as far as it is installed."""
    installed = {}
    for name in SOLVERS[solver][1]:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if solver == "nonsmooth":
        import nonsmooth

        installed = {"nonsmooth": nonsmooth.__version__, **installed}
    return installed
