"""The penalty weight: runs do not hang on the one they begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize
from problems.random_problems import draw

Function = Callable[[Tensor], Any]


def large_multipliers(seed: int) -> tuple[Function, Tensor]:
    """Curved equalities with multipliers of up to 1e5, from starts that may be far away."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    n = 3 + seed % 6
    m = n // 2
    rows, right, target = draw(m, n), draw(m), 10 * draw(n)
    steepness = 10.0 ** (seed % 5)

    def function(x: Tensor) -> Any:
        return steepness * ((x - target) ** 2).sum() + 0.01 * (x**4).sum(), None, rows @ x - right + 0.1 * x[:m] ** 2

    return function, 10.0 ** (seed % 3) * draw(n)


@pytest.mark.parametrize("seed", range(10))
def test_large_multipliers_and_far_starts(seed: int) -> None:
    function, start = large_multipliers(seed)
    result = minimize(function, start, compile="never")
    assert result.status is Status.STATIONARY and result.violation < 1e-6
    assert result.evaluations < 150


@pytest.mark.parametrize("seed", [1, 5, 8])
@pytest.mark.parametrize("parameter", [1e-6, 1e-3, 0.1, 10.0, 1e3])
def test_any_first_weight_will_do(seed: int, parameter: float) -> None:
    function, start = large_multipliers(seed)
    result = minimize(function, start, penalty_parameter=parameter, compile="never")
    assert result.status is Status.STATIONARY and result.evaluations < 300


@pytest.mark.parametrize("family", ["curved equalities", "curved inequalities", "max as inequality", "spheres"])
@pytest.mark.parametrize("seed", [600, 601])
def test_a_weight_that_is_far_too_large_is_lowered(family: str, seed: int) -> None:
    problem = draw(family, size=10, seed=seed)
    usual = minimize(problem.function, problem.start, compile="never", structure="off")
    result = minimize(problem.function, problem.start, penalty_parameter=1e-6, compile="never", structure="off")
    assert result.status is Status.STATIONARY
    assert result.penalty_parameter > 1e-4
    assert result.evaluations < 3 * usual.evaluations


@pytest.mark.parametrize("parameter", [100.0, 10.0, 1.0, 0.1, 0.01])
def test_a_kinked_valley_from_afar(parameter: float) -> None:
    def valley(x: Tensor) -> Any:
        f = 8 * (x[0] ** 2 - x[1]).abs() + (1 - x[0]) ** 2
        return f, torch.stack([2**0.5 * x[0] - 1, 2 * x[1] - 1]), None

    start = torch.tensor([5.5, 5.5], dtype=torch.float64)
    result = minimize(valley, start, penalty_parameter=parameter, compile="never")
    assert result.status is Status.STATIONARY and result.f == pytest.approx(0.0857864, abs=1e-5)
    assert result.evaluations < 200
