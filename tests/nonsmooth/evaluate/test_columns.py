"""The Jacobian by columns against that by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Problem
from nonsmooth.evaluate import Evaluator, differentiation
from nonsmooth.evaluate.columns import columns_are_cheaper, jacobian_by_columns
from nonsmooth.variables import Variables

MATRIX = torch.randn(60, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
POINT = np.array([0.3, -1.2, 0.7, 0.4])
START = torch.ones(4, dtype=torch.float64)


def evaluated(function: Any, start: Any = START, point: np.ndarray = POINT) -> tuple[Evaluator, Any]:
    evaluator = Evaluator(Problem(function), Variables(start))
    return evaluator, evaluator(point)


def by_rows(function: Any, monkeypatch: pytest.MonkeyPatch, start: Any = START, point: np.ndarray = POINT) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(differentiation, "columns_are_cheaper", lambda constraints, variables: False)
        return np.array(evaluated(function, start, point)[1].jacobian)


FUNCTIONS: dict[str, Any] = {
    "linear": lambda x: (x.sum(), MATRIX @ x - 1, None),
    "balls": lambda x: (x.sum(), ((x - MATRIX) ** 2).sum(1) - 1, None),
    "norms": lambda x: (x.sum(), torch.linalg.vector_norm(x - MATRIX, dim=1) - 1, None),
    "kinks": lambda x: (x.abs().sum(), (x - MATRIX).abs().amax(1) - torch.relu(MATRIX @ x), None),
    "several blocks": lambda x: (x.sum(), [torch.sin(MATRIX @ x), x[:2] ** 2], (MATRIX * x).exp().sum(1) - 4),
    "eigenvalues": lambda x: (x.sum(), torch.linalg.eigvalsh(torch.outer(x, x) + torch.diag(x)).repeat(15) - MATRIX @ x, None),
    "a constant among them": lambda x: (x.sum(), torch.cat([MATRIX @ x, torch.ones(3, dtype=torch.float64)]), None),
    "at 0 of a norm": lambda x: (x.sum(), torch.linalg.vector_norm(x - MATRIX * 0 - torch.from_numpy(POINT), dim=1), None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_are_the_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator, trial = evaluated(FUNCTIONS[name])
    assert columns_are_cheaper(len(trial.c), 4)
    np.testing.assert_allclose(trial.jacobian, by_rows(FUNCTIONS[name], monkeypatch), rtol=1e-12, atol=1e-12)
    assert not evaluator.costs.once_only
    signs = np.linspace(0, 1, len(trial.c))
    derivatives = evaluator(POINT)._derivatives
    np.testing.assert_allclose(derivatives.full()[1], trial.jacobian)
    np.testing.assert_allclose(derivatives.combination(0.0, signs), signs @ trial.jacobian, atol=1e-10)  # the graph is whole


def test_several_variables_one_of_them_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    start = {
        "a": torch.zeros(2, 2, dtype=torch.float64),
        "b": torch.zeros(3, dtype=torch.float64),
        "c": torch.zeros(1).double(),
    }

    def function(v: dict[str, Tensor]) -> Any:
        return v["b"].sum(), torch.sin(MATRIX @ v["a"].reshape(-1)) * v["c"], None

    point = np.linspace(-1, 1, 8)
    _, trial = evaluated(function, start, point)
    np.testing.assert_allclose(trial.jacobian, by_rows(function, monkeypatch, start, point), rtol=1e-12, atol=1e-14)
    assert not trial.jacobian[:, 4:7].any() and trial.jacobian[:, 7].any()


def test_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = MATRIX.float()

    def function(x: Tensor) -> Any:
        return x.sum(), ((x - matrix) ** 2).sum(1), None

    _, trial = evaluated(function, START.float())
    np.testing.assert_allclose(trial.jacobian, by_rows(function, monkeypatch, START.float()), rtol=1e-5, atol=1e-5)


class OnceOnly(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return MATRIX @ x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient @ MATRIX


class Wrong(torch.autograd.Function):
    """Its backward pass is right, but what the pass itself is differentiated by is not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return MATRIX @ x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.detach() @ MATRIX + 0.5 * (gradient - gradient.detach()) @ MATRIX


@pytest.mark.parametrize("operation", [OnceOnly, Wrong])
def test_operations_that_cannot_be_differentiated_twice(operation: Any) -> None:
    def function(x: Tensor) -> Any:
        return x.sum(), operation.apply(x), None

    evaluator, trial = evaluated(function)
    np.testing.assert_allclose(trial.jacobian, MATRIX.numpy())
    assert evaluator.costs.once_only == (operation is OnceOnly)


def test_where_something_is_not_finite_the_rows_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Tensor) -> Any:
        return x.sum(), torch.cat([MATRIX @ x, x.sqrt()]), None

    edge = np.array([0.0, 1.0, 1.0, 1.0])
    _, trial = evaluated(function, START, edge)
    assert not trial.differentiable
    np.testing.assert_array_equal(trial.jacobian, by_rows(function, monkeypatch, START, edge))


def test_nothing_of_c_depends_on_the_variables() -> None:
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    c = (x.detach() * 2).repeat(20) + 0 * x.sum()
    found = jacobian_by_columns(c, [x])
    assert found is None or not found.any()
