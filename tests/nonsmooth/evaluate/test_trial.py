"""Points, and what two of them have in common."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Problem, minimize
from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.evaluate.trial import MAX_ROWS_WITH_FULL_JACOBIAN
from nonsmooth.variables import Variables


def point(jacobian: list[list[float]]) -> Trial:
    return Trial.stored(np.zeros(2), 1.0, np.zeros(len(jacobian)), 0, np.ones(2), np.array(jacobian).reshape(-1, 2))


def test_every_gradient_has_a_key_of_its_own() -> None:
    one, other = point([[1.0, 0.0], [0.0, 1.0]]), point([[1.0, 0.0], [0.0, 2.0]])
    assert len({*one.keys.tolist(), *other.keys.tolist()}) == 6


def test_gradients_that_are_the_same_are_kept_once() -> None:
    before, after, curved = (point([[1.0, 0.0], [0.0, slope]]) for slope in (1.0, 1.0, 2.0))
    after.share_rows(before)
    assert after.jacobian is before.jacobian and after.keys[1:].tolist() == before.keys[1:].tolist()
    assert after.keys[0] != before.keys[0]  # that of f is another
    curved.share_rows(after)
    assert not set(curved.keys.tolist()) & set(before.keys.tolist())
    later = point([[1.0, 0.0], [0.0, 1.0]])
    later.share_rows(after)
    assert later.keys[1:].tolist() == before.keys[1:].tolist()
    free = point([])
    free.share_rows(before)
    assert len(free.keys) == 1


@pytest.mark.parametrize("count", [MAX_ROWS_WITH_FULL_JACOBIAN, MAX_ROWS_WITH_FULL_JACOBIAN + 1])
def test_few_constraints_are_differentiated_at_once(count: int) -> None:
    """Else a point that is searched and then kept would be differentiated twice."""

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        return (x**2).sum(), torch.stack([(x + k).sin().sum() for k in range(count)]), None

    start = torch.linspace(0.1, 0.7, 3, dtype=torch.float64)
    evaluator = Evaluator(Problem(function), Variables(start))
    trial, leaf = evaluator(start.numpy()), start.clone().requires_grad_()
    f, c, _ = function(leaf)
    (right,) = torch.autograd.grad(f + 3.0 * torch.relu(c).sum(), leaf)
    np.testing.assert_allclose(trial.penalty_gradient(3.0), right.numpy(), rtol=1e-12)
    few = count <= MAX_ROWS_WITH_FULL_JACOBIAN
    assert (evaluator.costs.gradients, evaluator.costs.jacobians) == ((0, 1) if few else (1, 0))
    _ = trial.jacobian
    assert (evaluator.costs.gradients, evaluator.costs.jacobians) == ((0, 1) if few else (1, 1))
    result = minimize(function, start, compile="never")
    assert (result.costs.gradients == 0) is few
