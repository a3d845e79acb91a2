"""The peer's published examples as structured problems: named variables or a module, in the peer's manner.

Data and starting points come from the same seeds as those the peer was measured with, so results can be compared.
The function takes the variables (tensors by name, or the module) and returns f and lists of constraints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .case import Constant
from .data import (
    component_data,
    dictionary_data,
    flower_data,
    generator,
    lasso_data,
    many_constraints_data,
    output_feedback_plant,
    sphere_data,
    trace_data,
)

StructuredValues = tuple[Tensor, list[Tensor] | None, list[Tensor] | None]


@dataclass(frozen=True)
class Published:
    """A problem in named variables. `make` functions return a new one each time, so nothing is shared."""

    name: str
    variables: dict[str, tuple[int, ...]] | nn.Module
    """Shapes by name, in the order of the flat vector; or a module, whose parameters are the variables."""
    function: Callable[[Any], StructuredValues]
    start: Tensor
    """(n, 1), float64"""
    options: dict[str, float] = field(default_factory=dict)
    """The peer's names: maxit, opt_tol, viol_eq_tol, mu0, limited_mem_size, maxclocktime."""
    optimum: float | None = None
    local_optima: tuple[float, ...] = ()
    """Values of known local minima, ascending, where a solver may rightly end in any of them."""
    peer_objective: float | None = None
    peer_violation: float | None = None

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.start.numel()

    def unflatten(self, x: Tensor) -> dict[str, Tensor]:
        """Named variables from a flat vector; for problems without a module."""
        if isinstance(self.variables, nn.Module):
            raise ValueError(f"the variables of {self.name!r} are a module's")
        sizes = [math.prod(shape) for shape in self.variables.values()]
        parts = x.reshape(-1).split(sizes)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.variables.items(), parts, strict=True)}


def nonsmooth_rosenbrock(*, random_start: bool = False) -> Published:
    """A1, and A1r from a random start off the kink."""

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        first, second = variables["x1"], variables["x2"]
        value = 8 * (first**2 - second).abs() + (1 - first) ** 2
        return value.squeeze(), [math.sqrt(2) * first - 1, 2 * second - 1], None

    start = torch.randn(2, 1, dtype=torch.float64, generator=generator(0)) if random_start else torch.ones(2, 1).double()
    return Published(
        name="A1r" if random_start else "A1",
        variables={"x1": (1,), "x2": (1,)},
        function=function,
        start=start,
        options={"maxit": 100, "opt_tol": 1e-6} if random_start else {},
        optimum=(1 - math.sqrt(0.5)) ** 2,
        peer_objective=0.08580572 if random_start else 0.08578644,
        peer_violation=7e-16 if random_start else 2e-16,
    )


def output_feedback(states: int = 40, inputs: int = 10, outputs: int = 20) -> Published:
    """A2, static output feedback of a synthetic plant; whether a feasible point exists is not known."""
    dynamics, control, measurement = (Constant(matrix) for matrix in output_feedback_plant(states, inputs, outputs))

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        gain = variables["X"]
        values = torch.linalg.eigvals(dynamics(gain) + control(gain) @ gain @ measurement(gain))
        return values.imag.max(), [values.real.max() + 0.3], None

    return Published(
        name="A2",
        variables={"X": (inputs, outputs)},
        function=function,
        start=torch.zeros(inputs * outputs, 1, dtype=torch.float64),
        options={"maxit": 200, "maxclocktime": 60},
        peer_objective=0.510,
        peer_violation=0.18,
    )


def dictionary_learning(n: int = 30) -> Published:
    """A3: the sparsest combination of the rows, on the sphere. Every unit vector is a local minimizer."""
    data, start = dictionary_data(n)
    matrix, count = Constant(data), data.shape[1]

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        direction = variables["q"]
        return (direction.T @ matrix(direction)).abs().sum() / count, None, [direction.T @ direction - 1]

    return Published(
        name="A3",
        variables={"q": (n, 1)},
        function=function,
        start=start,
        options={"maxit": 500},
        local_optima=tuple(sorted((data.abs().sum(1) / count).tolist())),
        peer_objective=0.4919421 if n == 30 else None,
        peer_violation=6e-10 if n == 30 else None,
    )


def feasibility() -> Published:
    """B1: a point that satisfies three inequalities; the objective is constant."""

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        x, y = variables["x"], variables["y"]
        limits = [(y + x**2) ** 2 + 0.1 * y**2 - 1, y - torch.exp(-x) - 3, y - x + 4]
        return (0 * x + 0 * y).squeeze(), limits, None

    return Published(
        name="B1",
        variables={"x": (1, 1), "y": (1, 1)},
        function=function,
        start=torch.zeros(2, 1, dtype=torch.float64),
        optimum=0.0,
        peer_objective=0.0,
        peer_violation=0.0,
    )


def sphere(n: int = 300) -> Published:
    """B2: the largest eigenvalue, on the sphere."""
    symmetric, start = sphere_data(n)
    matrix = Constant(symmetric)

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        x = variables["x"]
        return -(x.T @ matrix(x) @ x).squeeze(), None, [x.T @ x - 1]

    return Published(
        name="B2",
        variables={"x": (n, 1)},
        function=function,
        start=start,
        options={"mu0": 0.1, "opt_tol": 1e-6},
        optimum=-float(torch.linalg.eigvalsh(symmetric)[-1]),
        peer_objective=-24.28592 if n == 300 else None,
        peer_violation=7e-12 if n == 300 else None,
    )


def trace(n: int = 5, columns: int = 2, iterations: int = 1000) -> Published:
    """B3 and, with 20 and 5, B3big: the largest trace over orthonormal columns."""
    symmetric, start = trace_data(n, columns)
    matrix, identity = Constant(symmetric), Constant(torch.eye(columns))

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        basis = variables["V"]
        return -torch.trace(basis.T @ matrix(basis) @ basis), None, [basis.T @ basis - identity(basis)]

    peer = {(5, 2): ("B3", -3.912452, 7e-9), (20, 5): ("B3big", -18.42786, 2e-10)}
    name, objective, violation = peer.get((n, columns), (f"B3_{n}_{columns}", None, None))
    return Published(
        name=name,
        variables={"V": (n, columns)},
        function=function,
        start=start,
        options={"opt_tol": 5e-6, "maxit": iterations},
        optimum=-float(torch.linalg.eigvalsh(symmetric)[-columns:].sum()),
        peer_objective=objective,
        peer_violation=violation,
    )


def robust_components(rows: int = 3, columns: int = 4, iterations: int = 1000) -> Published:
    """C1 and, with 10 and 12, C1big: robust principal components. M = 0 is optimal where the multiplier fits."""
    target = component_data(rows, columns)
    observed = Constant(target)
    exact = float(torch.linalg.matrix_norm(0.05 * target.sign(), ord=2)) <= 1

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        low, sparse = variables["M"], variables["S"]
        value = torch.linalg.matrix_norm(low, ord="nuc") + 0.05 * sparse.abs().sum()
        return value, None, [low + sparse - observed(low)]

    peer = {(3, 4): ("C1", 0.3337505, 3e-14), (10, 12): ("C1big", 5.34006, 4e-16)}
    name, objective, violation = peer.get((rows, columns), (f"C1_{rows}_{columns}", None, None))
    return Published(
        name=name,
        variables={"M": (rows, columns), "S": (rows, columns)},
        function=function,
        start=0.2 * torch.ones(2 * rows * columns, 1, dtype=torch.float64),
        options={"opt_tol": 1e-6, "maxit": iterations},
        optimum=0.05 * float(target.abs().sum()) if exact else None,
        peer_objective=objective,
        peer_violation=violation,
    )


def generalized_lasso(n: int = 80) -> Published:
    """C2: total variation denoising."""
    signal = Constant(lasso_data(n))

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        x = variables["x"]
        return ((x - signal(x)) ** 2).sum() + 0.5 * (x[1:] - x[:-1]).abs().sum(), None, None

    return Published(
        name="C2",
        variables={"x": (n, 1)},
        function=function,
        start=torch.ones(n, 1, dtype=torch.float64),
        optimum=5.07795525617263 if n == 80 else None,
        peer_objective=5.077955 if n == 80 else None,
        peer_violation=0.0 if n == 80 else None,
    )


def logistic(weight: float = 7.36) -> Published:
    """C3: logistic regression with a 1-norm; only one coefficient of the solution is not 0."""
    points, labels = (Constant(data) for data in flower_data())

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        coefficients = variables["w"]
        margins = labels(coefficients) * (points(coefficients) @ coefficients)
        return torch.log(torch.exp(-margins) + 1).sum() + coefficients.abs().sum() / weight, None, None

    return Published(
        name="C3",
        variables={"w": (4, 1)},
        function=function,
        start=torch.zeros(4, 1, dtype=torch.float64),
        options={"maxit": 50, "opt_tol": 1e-6},
        optimum=35.71150541456092 if weight == 7.36 else None,
        peer_objective=35.71151 if weight == 7.36 else None,
        peer_violation=0.0 if weight == 7.36 else None,
    )


MANY_CONSTRAINTS_OPTIMA = {
    (10, 50, 0): 66.2776141523668,
    (100, 50, 0): 75.33341968933401,
    (500, 50, 0): 82.69528630556006,
    (1000, 50, 0): 84.25170924978063,
}
"""By constraints, n and seed; from the dual, without a gap in the first 15 digits."""


def many_constraints(constraints: int = 100, n: int = 50, seed: int = 0) -> Published:
    """MC: a 1-norm and a square, within very many half-spaces; convex."""
    center, rows, limits, start = many_constraints_data(constraints, n, seed)
    target, matrix, levels = Constant(center), Constant(rows), Constant(limits)

    def function(variables: dict[str, Tensor]) -> StructuredValues:
        x = variables["x"]
        return (x - target(x)).abs().sum() + 0.5 * (x**2).sum(), [matrix(x) @ x - levels(x)], None

    return Published(
        name="MC",
        variables={"x": (n, 1)},
        function=function,
        start=start,
        options={"opt_tol": 1e-6, "maxit": 200, "maxclocktime": 60},
        optimum=MANY_CONSTRAINTS_OPTIMA.get((constraints, n, seed)),
    )
