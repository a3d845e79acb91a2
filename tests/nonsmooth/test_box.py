"""Bounds are a box: no point leaves it, steps know it, and it costs nothing where there are many of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize as peer
from torch import Tensor

from nonsmooth import Status, minimize
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory, curvature_pair
from nonsmooth.hessian.face import Face


def double(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("size", "kind"), [(12, FullMemory), (150, FullMemory), (220, FullMemory), (30, LimitedMemory)])
def test_a_face_minimizes_the_model_over_the_free_variables(size: int, kind: type) -> None:
    draw = np.random.default_rng(size)
    hessian: InverseHessian = kind(size) if kind is FullMemory else kind(size, pairs=5)
    root = draw.standard_normal((size, size))
    for _ in range(8):
        s = draw.standard_normal(size)
        hessian.update(curvature_pair(s, root @ (root.T @ s) + s, None, 0.0))
    matrix = np.linalg.inv(np.column_stack([hessian.apply(row) for row in np.eye(size)]))
    fixed = np.sort(draw.choice(size, size // 3, replace=False))
    free, changes, gradient = np.setdiff1d(np.arange(size), fixed), draw.standard_normal(len(fixed)), draw.standard_normal(size)
    step = np.zeros(size)
    step[fixed] = changes
    step[free] = np.linalg.solve(matrix[np.ix_(free, free)], -gradient[free] - matrix[np.ix_(free, fixed)] @ changes)
    face = Face(hessian, fixed, changes)
    np.testing.assert_allclose(face.displacement - face.apply(gradient), step, atol=1e-10)
    np.testing.assert_allclose(face.multipliers(gradient), (matrix @ step + gradient)[fixed], atol=1e-8)


@pytest.mark.parametrize("size", [1_000, 3_000, 100_000])
def test_many_bounds(size: int) -> None:
    result = minimize(
        lambda x: (x - 2).square().sum(), torch.zeros(size, dtype=torch.float64), bounds=(-1.0, 1.0), compile="never"
    )
    assert result.status is Status.STATIONARY
    torch.testing.assert_close(result.x, torch.ones(size, dtype=torch.float64))
    torch.testing.assert_close(result.multipliers.upper, torch.full((size,), 2.0, dtype=torch.float64))
    assert result.evaluations <= 20


def rosenbrock(x: Tensor) -> Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("upper", [0.3, 0.7, 1.5])
@pytest.mark.parametrize("size", [2, 10, 60])
def test_the_same_minimum_as_a_peer(size: int, upper: float) -> None:
    start = 0.2 * torch.ones(size, dtype=torch.float64)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.tensor(x, requires_grad=True)
        value = rosenbrock(point)
        (gradient,) = torch.autograd.grad(value, point)
        return value.item(), gradient.numpy()

    expected = peer(
        function, start.numpy(), jac=True, method="L-BFGS-B", bounds=[(-2.0, upper)] * size, options={"ftol": 1e-14}
    )
    result = minimize(rosenbrock, start, bounds=(-2.0, upper), compile="never")
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(expected.fun, rel=1e-6, abs=1e-8)
    assert result.check().stationary


def test_no_function_is_evaluated_outside() -> None:
    """From a start that is not inside either, with kinks and a constraint."""
    lower, upper = double([0.0, 0.5, -1.0]), double([2.0, 0.5, 1.0])
    seen: list[Tensor] = []

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        seen.append(x.detach().clone())
        return torch.log(x[0] + 1e-3).abs() + (x[2] - 3 * x[0]).abs() + x.sum(), 0.2 - x[0] * x[1], None

    result = minimize(function, double([-5.0, 7.0, 9.0]), bounds=(lower, upper), compile="never")
    points = torch.stack(seen)
    assert bool(((points >= lower) & (points <= upper)).all())
    assert result.success and result.x[1] == 0.5


def test_single_precision_stays_inside_bounds_that_it_cannot_represent() -> None:
    seen: list[Tensor] = []

    def function(x: Tensor) -> Tensor:
        seen.append(x.detach().double())
        return -x.sum()

    result = minimize(function, torch.zeros(3), bounds=(0.0, 0.1), compile="never")
    assert result.success and bool((torch.stack(seen) <= 0.1).all())


def test_a_pole_outside_the_bounds_is_never_met() -> None:
    result = minimize(lambda x: -1 / (x + 0.1).sum(), double([1.0]), bounds=(0.0, None), compile="never")
    assert result.success and float(result.x) == 0.0
    assert float(result.multipliers.lower) == pytest.approx(100.0, rel=1e-3)


def test_soft_bounds_may_be_left_on_the_way() -> None:
    seen: list[float] = []

    def function(x: Tensor) -> Tensor:
        seen.append(float(x.detach()))
        return (x - 3).square().sum()

    result = minimize(function, double([-4.0]), bounds=(None, 1.0), soft_bounds=True, compile="never")
    assert result.success and float(result.x) == pytest.approx(1.0, abs=1e-5)
    assert max(seen) > 1.0


def test_a_kink_on_a_bound() -> None:
    result = minimize(lambda x: (x[0] - x[1]).abs() + 2 * x[0] - x[1], double([0.7, 0.2]), bounds=(0.0, 1.0), compile="never")
    assert result.success and result.f == pytest.approx(0.0, abs=1e-6)
