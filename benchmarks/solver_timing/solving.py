"""How each solver is called on a published problem, with a record of when it evaluated what.

PyGRANSO and `nonsmooth.pygranso` get the same call: the same function, options and start, in PyGRANSO's own form.
`minimize` gets the same problem in its own. Nothing here imports a solver before it is called, because each has an
environment of its own.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor, nn

from problems import Published

OPTION_NAMES = {
    "maxit": "max_iterations",
    "maxclocktime": "max_seconds",
    "opt_tol": "stationarity_tolerance",
    "viol_ineq_tol": "inequality_tolerance",
    "viol_eq_tol": "equality_tolerance",
    "mu0": "penalty_parameter",
    "limited_mem_size": "memory",
}


class Recorder:
    """A problem's function in PyGRANSO's form, which notes the time and the values of every evaluation."""

    def __init__(self, problem: Published, struct: type) -> None:
        self._problem, self._struct = problem, struct
        self._names = None if isinstance(problem.variables, nn.Module) else tuple(problem.variables)
        self.first: float | None = None
        """When the first evaluation began."""
        self.times: list[float] = []
        self.values: list[tuple[Any, Any, Any]] = []

    def __call__(self, variables: Any) -> list[Any]:
        """f, ci and ce."""
        self.first = self.first or perf_counter()
        arguments = variables if self._names is None else {name: getattr(variables, name) for name in self._names}
        f, inequalities, equalities = self._problem.function(arguments)
        self.times.append(perf_counter())
        with torch._C.DisableTorchFunction():  # nothing of this is the function
            self.values.append((f.detach(), _detached(inequalities), _detached(equalities)))
        return [f, self._named(inequalities), self._named(equalities)]

    def _named(self, constraints: list[Tensor] | None) -> Any:
        if constraints is None:
            return None
        struct = self._struct()
        for index, constraint in enumerate(constraints):
            setattr(struct, f"c{index}", constraint)
        return struct

    def evaluations(self, began: float) -> dict[str, list[float]]:
        """Seconds since `began`, objective and largest violation of every evaluation."""
        return {
            "seconds": [time - began for time in self.times],
            "f": [float(f) for f, _, _ in self.values],
            "violation": [violation(inequalities, equalities) for _, inequalities, equalities in self.values],
        }


def _detached(constraints: list[Tensor] | None) -> list[Tensor] | None:
    return None if constraints is None else [constraint.detach() for constraint in constraints]


def violation(inequalities: list[Tensor] | None, equalities: list[Tensor] | None) -> float:
    """The largest violation of a constraint."""
    worst = [float(constraint.max()) for constraint in inequalities or ()]
    worst += [float(constraint.abs().max()) for constraint in equalities or ()]
    return max(0.0, *worst) if worst else 0.0


def small() -> Published:
    """A problem with everything in it, on which a solver can load what it loads late."""

    def function(variables: dict[str, Tensor]) -> Any:
        x = variables["x"]
        return x.abs().sum() + (x**2).sum(), [1 - x[:2]], [x[2:] - 0.5]

    return Published("small", {"x": (4, 1)}, function, torch.ones(4, 1, dtype=torch.float64), {"maxit": 5})


def by_peer(problem: Published, device: str = "cpu") -> dict[str, Any]:
    """PyGRANSO, silent, else with the problem's options only. Needs its environment."""
    from pygranso.pygranso import pygranso
    from pygranso.pygransoStruct import pygransoStruct

    recorder = Recorder(problem, pygransoStruct)
    options = _struct(problem, pygransoStruct)
    options.torch_device = torch.device(device)
    options.x0 = options.x0.to(device)
    if isinstance(problem.variables, nn.Module):
        problem.variables.to(device)
    if perf_counter is process_time:
        options.maxclocktime = math.inf  # it would be in seconds of the wall
    options.quadprog_info_msg = options.prescaling_info_msg = False
    began = perf_counter()
    solution = pygranso(var_spec=_specification(problem), combined_fn=recorder, user_opts=options)
    seconds = perf_counter() - began
    evaluations = recorder.evaluations(began)
    final = _evaluated(problem, solution.final.x)
    return {
        "seconds": seconds,
        "f": final[0],
        "violation": final[1],
        "penalty_parameter": float(getattr(solution.final, "mu", 1.0)),
        "status": f"code {solution.termination_code}",
        "iterations": int(solution.iters),
        "evaluations": evaluations,
    }


def by_compatible(problem: Published) -> dict[str, Any]:
    """`nonsmooth.pygranso`, called as PyGRANSO is."""
    from nonsmooth.pygranso import pygranso, pygransoStruct

    recorder = Recorder(problem, pygransoStruct)
    began = perf_counter()
    solution = pygranso(_specification(problem), recorder, _struct(problem, pygransoStruct))
    seconds = perf_counter() - began
    evaluations = recorder.evaluations(began)
    result = solution.result
    assert recorder.first is not None
    before = recorder.first - began  # the clock of the history starts right before the first evaluation
    return {
        "seconds": seconds,
        "f": result.f,
        "violation": result.violation,
        "status": result.status.name,
        "iterations": result.iterations,
        "evaluations": evaluations,
        "iterates": {
            "seconds": [before + at for at in result.history.seconds.tolist()],
            "f": result.history.f.tolist(),
            "violation": result.history.violation.tolist(),
        },
        "time": dict(result.time),
    }


def minimize_arguments(problem: Published) -> tuple[Any, Any, dict[str, Any]]:
    """Function, start and options for `minimize`."""
    options = {OPTION_NAMES[name]: value for name, value in problem.options.items()}
    if isinstance(problem.variables, nn.Module):
        return problem.function, problem.variables, options
    return problem.function, problem.unflatten(problem.start.clone()), options


def has_compile_option() -> bool:
    """Whether `minimize` of this version can compile."""
    import nonsmooth

    fields = {field.name for field in dataclasses.fields(nonsmooth.Options)}
    return "compile" in fields or "compile" in inspect.signature(nonsmooth.minimize).parameters


def _specification(problem: Published) -> Any:
    if isinstance(problem.variables, nn.Module):
        return problem.variables
    return {name: list(shape) for name, shape in problem.variables.items()}


def _struct(problem: Published, struct: type) -> Any:
    options = struct()
    for name, value in {**problem.options, "x0": problem.start.clone(), "print_level": 0}.items():
        setattr(options, name, value)
    return options


def _evaluated(problem: Published, x: Tensor) -> tuple[float, float]:
    if isinstance(problem.variables, nn.Module):
        nn.utils.vector_to_parameters(x.reshape(-1), problem.variables.parameters())
        arguments: Any = problem.variables
    else:
        arguments = problem.unflatten(x)
    with torch.no_grad():
        f, inequalities, equalities = problem.function(arguments)
    return float(f), violation(inequalities, equalities)
