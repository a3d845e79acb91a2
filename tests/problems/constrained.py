"""Nonsmooth problems with constraints, and smooth ones on manifolds: the class the solver is made for."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from .case import Case, Constant, Values, largest, unconstrained
from .catalog import catalog
from .chained import LIMITED, lq_terms
from .data import component_data, lasso_data, output_feedback_plant, trace_data
from .solutions import SOLVED

MADSEN = "Lukšan-Vlček TR-798 (linearly constrained minimax)"


def nonsmooth_rosenbrock(x: Tensor) -> Values:
    limits = torch.stack([math.sqrt(2) * x[0] - 1, 2 * x[1] - 1])
    return 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2, limits, None


def nonsmooth_rosenbrock_folded(x: Tensor) -> Values:
    value, limits, _ = nonsmooth_rosenbrock(x)
    assert limits is not None
    return value, limits.max().reshape(1), None


def mad_pieces(x: Tensor) -> Tensor:
    return torch.stack([x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 1, x[0].sin(), -x[1].cos()])


def mad1_limit(x: Tensor) -> Tensor:
    return (0.5 - x[0] - x[1]).reshape(1)


def mad2_limit(x: Tensor) -> Tensor:
    return (2.5 + 3 * x[0] + x[1]).reshape(1)


def chained_lq_mad(n: int = 20) -> Case:
    """Chained LQ in a chain of ellipses."""

    def function(x: Tensor) -> Values:
        left, right = x[:-1], x[1:]
        return lq_terms(x).amax(0).sum(), left**2 + right**2 + left * right - 1, None

    return Case(
        name="chained_lq_mad" if n == 20 else f"chained_lq_mad_{n}",
        function=function,
        n=n,
        start=(-0.5,) * n,
        start_value=float(n - 1),
        optimum=-(n - 1) * 2 / math.sqrt(3),
        solution=(1 / math.sqrt(3),) * n,
        convex=True,
        inequalities=n - 1,
        source=f"{LIMITED}; lifted problem and closed form",
    )


def maxq_limits(x: Tensor) -> Tensor:
    left, right = x[:-1], x[1:]
    return left**2 + right**2 + left * right - 2 * left - 2 * right + 1


def maxq_mad(n: int = 20) -> Case:
    """The largest square, in a chain of ellipses that leave the origin out."""
    return Case(
        name="maxq_mad" if n == 20 else f"maxq_mad_{n}",
        function=largest(lambda x: x**2, maxq_limits),
        pieces=lambda x: x**2,
        n=n,
        start=(0.5,) * n,
        start_value=0.25,
        optimum=1 / 9,
        solution=(1 / 3,) * n,
        convex=True,
        inequalities=n - 1,
        source=f"{LIMITED}; lifted problem and closed form",
    )


def basis_pursuit_data() -> tuple[Tensor, Tensor]:
    """A 15 x 40 matrix and the 3-sparse vector that is to be found again."""
    matrix = torch.from_numpy(np.random.default_rng(0).standard_normal((15, 40)))
    truth = torch.zeros(40, dtype=torch.float64)
    truth[3], truth[17], truth[31] = 1.5, -2.0, 0.7
    return matrix, truth


def basis_pursuit() -> Case:
    """The solution of least 1-norm of an underdetermined system."""
    matrix, truth = basis_pursuit_data()
    rows, target = Constant(matrix), Constant(truth)

    def function(x: Tensor) -> Values:
        return x.abs().sum(), None, rows(x) @ (x - target(x))

    return Case(
        name="basis_pursuit",
        function=function,
        n=40,
        start=lambda: torch.linalg.pinv(matrix) @ (matrix @ truth) + 0.1,
        optimum=4.2,
        solution=tuple(truth.tolist()),
        convex=True,
        equalities=15,
        source="exact: linear program",
    )


def smallest_eigenvalue() -> Case:
    """The Rayleigh quotient on the sphere; smooth."""
    draws = np.random.default_rng(0)
    matrix = torch.from_numpy(draws.standard_normal((30, 30)))
    matrix = (matrix + matrix.T) / 2
    start = tuple(draws.standard_normal(30).tolist())
    values, vectors = torch.linalg.eigh(matrix)
    quadratic = Constant(matrix)

    def function(x: Tensor) -> Values:
        return x @ (quadratic(x) @ x), None, (x @ x - 1).reshape(1)

    return Case(
        name="smallest_eigenvalue",
        function=function,
        n=30,
        start=start,
        optimum=float(values[0]),
        solution=tuple(vectors[:, 0].tolist()),
        smooth=True,
        equalities=1,
        source="exact: eigenvalues",
    )


def stiefel_trace(n: int = 5, columns: int = 2) -> Case:
    """The largest trace over orthonormal columns; the matrix of constraints is symmetric, so they are redundant."""
    matrix, start = trace_data(n, columns)
    values, vectors = torch.linalg.eigh(matrix)
    quadratic, identity = Constant(matrix), Constant(torch.eye(columns))

    def function(x: Tensor) -> Values:
        basis = x.reshape(n, columns)
        gram = basis.T @ basis - identity(x)
        return -torch.trace(basis.T @ quadratic(x) @ basis), None, gram.reshape(-1)

    return Case(
        name="stiefel_trace" if (n, columns) == (5, 2) else f"stiefel_trace_{n}_{columns}",
        function=function,
        n=n * columns,
        start=tuple(start.reshape(-1).tolist()),
        optimum=-float(values[-columns:].sum()),
        solution=tuple(vectors[:, -columns:].reshape(-1).tolist()),
        smooth=True,
        equalities=columns**2,
        source="PyGRANSO's trace example; exact: eigenvalues",
    )


def generalized_lasso() -> Case:
    """Total variation denoising; convex, without constraints, and nearly everywhere kinked at the solution."""
    signal = Constant(lasso_data().reshape(-1))

    def objective(x: Tensor) -> Tensor:
        return ((x - signal(x)) ** 2).sum() + 0.5 * (x[1:] - x[:-1]).abs().sum()

    return Case(
        name="generalized_lasso",
        function=unconstrained(objective),
        n=80,
        start=(1.0,) * 80,
        optimum=5.07795525617263,
        convex=True,
        source="PyGRANSO's LASSO example; exact: dual box-constrained least squares, see reference.py",
    )


def robust_components(rows: int = 3, columns: int = 4) -> Case:
    """Robust principal components: a low-rank and a sparse part. The weight is so small that all is in the sparse one.

    M = 0 and S = Y are optimal where the multiplier 0.05 sign(Y) is a subgradient of the nuclear norm at 0, that is,
    where its spectral norm is at most 1.
    """
    target = component_data(rows, columns)
    observed = Constant(target)
    exact = float(torch.linalg.matrix_norm(0.05 * target.sign(), ord=2)) <= 1

    def function(x: Tensor) -> Values:
        low, sparse = x.reshape(2, rows, columns)
        equality = (low + sparse - observed(x)).reshape(-1)
        return torch.linalg.matrix_norm(low, ord="nuc") + 0.05 * sparse.abs().sum(), None, equality

    size = rows * columns
    return Case(
        name="robust_components" if (rows, columns) == (3, 4) else f"robust_components_{rows}_{columns}",
        function=function,
        n=2 * size,
        start=(0.2,) * (2 * size),
        optimum=0.05 * float(target.abs().sum()) if exact else None,
        solution=(0.0,) * size + tuple(target.reshape(-1).tolist()) if exact else None,
        convex=True,
        equalities=size,
        source="PyGRANSO's robust PCA example; exact: multiplier",
    )


def output_feedback() -> Case:
    """Static output feedback of a synthetic plant: nonsmooth, nonconvex and not even Lipschitz; no optimum is known."""
    dynamics, control, measurement = (Constant(matrix) for matrix in output_feedback_plant())
    inputs, outputs = control.values.shape[1], measurement.values.shape[0]

    def function(x: Tensor) -> Values:
        gain = x.reshape(inputs, outputs)
        values = torch.linalg.eigvals(dynamics(x) + control(x) @ gain @ measurement(x))
        return values.imag.max(), (values.real.max() + 0.3).reshape(1), None

    return Case(
        name="output_feedback",
        function=function,
        n=inputs * outputs,
        start=(0.0,) * (inputs * outputs),
        inequalities=1,
        source="PyGRANSO's static output feedback example with a synthetic plant",
    )


ROSENBROCK = "PyGRANSO's first example, Curtis-Overton 2012; solution, lifted problem and closed form"

CONSTRAINED = catalog(
    Case(
        name="nonsmooth_rosenbrock",
        function=nonsmooth_rosenbrock,
        n=2,
        start=(1.0, 1.0),
        start_value=0.0,
        optimum=(1 - math.sqrt(0.5)) ** 2,
        solution=(math.sqrt(0.5), 0.5),
        inequalities=2,
        source=ROSENBROCK,
    ),
    Case(
        name="nonsmooth_rosenbrock_folded",
        function=nonsmooth_rosenbrock_folded,
        n=2,
        start=(1.0, 1.0),
        start_value=0.0,
        optimum=(1 - math.sqrt(0.5)) ** 2,
        solution=(math.sqrt(0.5), 0.5),
        inequalities=1,
        source=ROSENBROCK,
    ),
    Case(
        name="mad1",
        function=largest(mad_pieces, mad1_limit),
        pieces=mad_pieces,
        n=2,
        start=(1.0, 2.0),
        optimum=SOLVED["mad1"][0],
        solution=SOLVED["mad1"][1],
        inequalities=1,
        source=f"{MADSEN}; lifted problem",
    ),
    Case(
        name="mad2",
        function=largest(mad_pieces, mad2_limit),
        pieces=mad_pieces,
        n=2,
        start=(-2.0, -1.0),
        optimum=SOLVED["mad2"][0],
        solution=SOLVED["mad2"][1],
        inequalities=1,
        source=f"{MADSEN}, constraint from memory; lifted problem",
    ),
    chained_lq_mad(),
    maxq_mad(),
    basis_pursuit(),
    smallest_eigenvalue(),
    stiefel_trace(),
    generalized_lasso(),
    robust_components(),
    output_feedback(),
)
