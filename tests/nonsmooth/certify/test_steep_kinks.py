"""Verdicts beside kinks that are steep by many orders of magnitude, and on such kinks where f falls gently along them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize

Function = Callable[[Tensor], Tensor]


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


BESIDE: dict[str, tuple[Function, Tensor, dict[str, Any], float]] = {
    "a kink 1e-13 away": (lambda x: 1e14 * abs(x[0] - 1e-13), tensor(0.0), {}, 0.0),
    "in other units": (lambda x: 1e4 * abs(1e6 * x[0] - 1e-6), tensor(0.0), {}, 0.0),
    "beside two": (
        lambda x: 27192 * abs(1e6 * x[0] - 1e-7) - 3.7e6 * x[0] + 0.12 * abs(1e6 * x[0]), tensor(0.0), {}, -3.58e-7,
    ),
    "beside a bound": (
        lambda x: 1e12 * abs(x[1] - 1e-12) + abs(x[0] + 5e3), tensor(-5e3, -0.1),
        {"bounds": (tensor(-1e4, 1e-13), tensor(1e4, 5e-5))}, 0.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("structure", ["auto", "off"])
@pytest.mark.parametrize("name", BESIDE)
def test_a_steep_kink_that_is_very_near_is_gone_to(name: str, structure: str) -> None:
    function, start, options, best = BESIDE[name]
    result = minimize(function, start, compile="never", structure=structure, **options)
    assert result.status is Status.STATIONARY
    assert result.f <= best + 1e-4


@pytest.mark.parametrize("structure", ["auto", "off"])
@pytest.mark.parametrize("slope", [1.0, 1e-2])
@pytest.mark.parametrize("start", [(0.0, 0.5), (1.27, 1.42)])
@pytest.mark.parametrize("decades", range(4, 8))
def test_no_verdict_on_a_steep_kink_hides_a_gentle_slope(
    decades: int, start: tuple[float, float], slope: float, structure: str
) -> None:
    weight = 10.0**decades
    result = minimize(
        lambda x: weight * abs(x[0] - x[1]) + slope * abs(x[0] - 3), tensor(*start), compile="never", structure=structure,
        max_evaluations=3000,
    )  # fmt: skip
    assert result.status is not Status.STATIONARY or result.f <= 1e-3 * (1 + slope)


UNBOUNDED: dict[str, Function] = {
    "beside a kink": lambda x: -x[0] + abs(x[1]),
    "a maximum": lambda x: torch.maximum(-x[0], -x[1]),
}


@pytest.mark.parametrize("structure", ["auto", "off"])
@pytest.mark.parametrize("name", UNBOUNDED)
def test_where_numbers_end_nothing_is_proven(name: str, structure: str) -> None:
    result = minimize(UNBOUNDED[name], tensor(0.0, 0.0), compile="never", structure=structure, max_evaluations=2000)
    assert result.status is Status.UNBOUNDED
