"""A start whose slopes are steep beyond measure does not hide what is left at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize

Function = Callable[[Tensor], Any]

STEEP: dict[str, tuple[Function, list[float], float]] = {
    "a quartic": (lambda x: x[0] ** 4 + (x[1] - 1) ** 2, [100.0, 0.0], 0.0),
    "a quartic from very far": (lambda x: x[0] ** 4 + (x[1] - 1) ** 2, [1000.0, 0.0], 0.0),
    "a power of eight": (lambda x: x[0] ** 8 + (x[0] - 1).abs(), [20.0], 0.34987749850258554),
    "an exponential": (lambda x: torch.exp(14 * x[0]) + (x[0] + 2) ** 2, [1.5], 0.0),
    "an exponential and a kink": (lambda x: torch.exp(20 * x[0]) + (x[0] + 2).abs(), [1.5], 0.0),
    "a quadratic": (lambda x: 1e8 * x[0] ** 2 + (x[1] - 3) ** 2, [1.0, 0.0], 0.0),
    "a kink": (lambda x: 1e7 * (x[0] - x[1]).abs() + (x[1] - 3).abs(), [1.0, 0.0], 0.0),
    "a curved kink": (lambda x: 1e5 * (x[0] ** 2 - x[1]).abs() + (x[0] - 1) ** 2, [-1.2, 1.0], 0.0),
    "a curved valley": (lambda x: 1e7 * (x[0] ** 2 - x[1]) ** 2 + (x[0] - 1) ** 2, [-1.2, 1.0], 0.0),
    "a pole": (lambda x: 1 / x[0] ** 2 + x[0], [1e-3], 1.8898815748423097),
}


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("name", STEEP)
def test_verdicts_from_steep_starts_are_true(name: str) -> None:
    function, start, optimum = STEEP[name]
    result = minimize(function, tensor(*start), compile="never")
    rounded = 1e-13 * float(function(tensor(*start)))  # of that size are rounding errors of values at the start
    assert result.status is not Status.STATIONARY or result.f <= optimum + rounded + 1e-2
    assert result.check().stationary is (result.status is Status.STATIONARY)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("decades", [0.0, 5.0])
def test_verdicts_on_random_sums_of_steep_and_gentle_terms_are_true(seed: int, decades: float) -> None:
    """Powers and exponentials of some variables, which are steep at the start, and gentle convex terms of others."""
    generator = torch.Generator().manual_seed(seed)
    n = 2 + seed % 4
    target, steepness = (torch.rand(n, generator=generator, dtype=torch.float64) for _ in range(2))
    units = 10.0 ** (decades * (2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1))
    weight = float(10.0 ** (decades * (2 * torch.rand(1, generator=generator, dtype=torch.float64) - 1)))
    power = 4 + 2 * (seed % 3)

    def natural(y: Tensor) -> Tensor:
        gentle = (y - target - 1).abs() if seed % 2 else (y - target - 1).square()
        return (y[:-1] - target[:-1]).pow(power).sum() + (10 * steepness * y[0]).exp().sum() * 1e-3 + gentle[-1]

    start = 20 * torch.rand(n, generator=generator, dtype=torch.float64) ** 2
    start[0] = 3.0
    result = minimize(lambda z: weight * natural(z / units), start * units, compile="never")
    if result.status is Status.STATIONARY:
        y = result.x / units
        with torch.no_grad():
            y[-1] = target[-1] + 1  # the minimizer along the last variable
            rounded = 1e-13 * float(natural(start))  # of that size are rounding errors of values at the start
            assert weight * float(natural(y)) >= result.f - 1e-4 * abs(result.f) - weight * (1e-4 + rounded)


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (lambda x: 1e7 * x[:1] ** 2 + (x[1:] - 3) ** 2 - 1, [1.0, 0.0]),
        (lambda x: 1e8 * x[:1] ** 2 + (x[1:] - 3) ** 2 - 1, [-2.0, 1.0]),
        (lambda x: torch.exp(14 * x[:1]) + (x[:1] + 2) ** 2 + (x[1:] - 1) ** 2 - 1, [1.5, 0.0]),
    ],
)
def test_steep_constraints_are_not_called_infeasible(function: Function, start: list[float]) -> None:
    result = minimize(lambda x: (x.sum(), function(x), None), tensor(*start), compile="never")
    assert result.status is not Status.INFEASIBLE


@pytest.mark.parametrize("units", [[1e4, 1e4, 1e-4], [1e5, 1e-5], [1e4, 1e3, 1e2, 1e-5], [1e-6, 1.0, 1e6]])
def test_units_are_seen_where_constraints_have_one_variable_each(units: list[float]) -> None:
    unit = tensor(*units)
    result = minimize(lambda x: ((x / unit).sum(), 1 - x / unit, None), 2 * unit, compile="never")
    assert result.status is Status.STATIONARY and result.f == pytest.approx(len(units))
    assert torch.allclose(result.x / unit, torch.ones(len(units), dtype=torch.float64), atol=1e-5)


def test_units_are_seen_where_rows_lack_a_variable() -> None:
    unit = tensor(1e5, 1e5, 1e5, 1e-5)

    def function(x: Tensor) -> Any:
        y = x / unit
        return y.square().sum(), None, y[:-1] - y[1:] + y.sum() - 3

    result = minimize(function, 0.5 * unit, compile="never")
    assert result.status is Status.STATIONARY and result.violation < 1e-6


@pytest.mark.parametrize("units", [(1e4, 1e-4), (1e-4, 1e-4), (1e6, 1.0), (1e-6, 1.0)])
def test_a_start_at_zero_hides_no_units(units: tuple[float, float]) -> None:
    unit, target = tensor(*units), tensor(0.3, 0.7)
    result = minimize(lambda x: (x / unit - target).abs().sum(), 0 * unit, compile="never")
    assert result.status is not Status.STATIONARY or result.f < 1e-6


BADLY_SCALED: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (
    lambda a, b, y: (a @ y - b).abs().sum() + 0.1 * y.square().sum(),
    lambda a, b, y: (a @ y - b).amax() + (a @ y - b).reshape(2, -1).amax(0).sum() + 0.5 * y.square().sum(),
    lambda a, b, y: torch.maximum((a @ y).abs().sum(), (a @ y - b).square().sum()),
    lambda a, b, y: torch.linalg.vector_norm(a @ y - b, float("inf")) + y.abs().sum(),
    lambda a, b, y: y.abs().max() + (y - 3).abs().sum() + 0.01 * (a @ y).square().sum(),
    lambda a, b, y: (a @ y).clamp(min=0.0).square().sum() + 0.5 * (y - b[: len(y)]).square().sum(),
)
"""Convex functions of y = units · x, all of the order of 1 where y is."""


@pytest.mark.parametrize("structure", ["auto", "off"])
@pytest.mark.parametrize("seed", range(24))
def test_verdicts_where_the_start_tells_nothing_of_the_units_are_true(seed: int, structure: str) -> None:
    """Variables start at 1 and end 10⁻⁴ to 10⁴ times as far away: what is left along one that has far to go looks small."""
    generator = torch.Generator().manual_seed(seed)
    n = 2 + seed % 7

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    a, b, start = random(2 * n, n), random(2 * n), random(n)
    units = 10.0 ** (2.0 * random(n)).clamp(-4, 4)
    natural = BADLY_SCALED[seed % len(BADLY_SCALED)]
    best = minimize(lambda y: natural(a, b, y), start, compile="never").f
    result = minimize(lambda x: natural(a, b, units * x), start, structure=structure, compile="never", max_iterations=1500)
    assert result.status is not Status.STATIONARY or result.f <= best + 1e-4 * (1 + abs(best))
    assert result.check().stationary is (result.status is Status.STATIONARY)
