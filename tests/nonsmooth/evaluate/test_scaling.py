"""Units chosen by what the start shows: exact, undone in what the user sees, and no reason for false verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize
from nonsmooth.evaluate.scaling import automatic_scales
from problems import ALL

NO_CONSTRAINTS = np.zeros((0, 3))


def test_natural_units_stay_as_they_are() -> None:
    scales = automatic_scales(np.array([1.0, -2.0, 0.5]), np.array([1.0, 0.3, -2.0]), np.array([[1.0, 1.0, 0.0]]))
    assert scales.is_identity


def test_a_value_or_a_slope_near_zero_says_nothing_about_units() -> None:
    for x, gradient in (
        ([1e-9, 1.0, 2.0], [1.0, 1.0, 1.0]),
        ([1.0, 1.0, 2.0], [1e-9, 1.0, 1.0]),
        ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
    ):
        assert automatic_scales(np.array(x), np.array(gradient), NO_CONSTRAINTS).variables is None


@pytest.mark.parametrize("decades", [-6.0, -3.0, 3.0, 6.0])
def test_units_of_variables_are_recovered(decades: float) -> None:
    units = np.array([1.0, 10.0**decades, 1.0])
    x, gradient = np.array([1.0, 2.0, -1.0]), np.array([1.0, -1.0, 0.5])
    found = automatic_scales(x * units, gradient / units, NO_CONSTRAINTS)
    assert found.variables is not None
    relative = found.variables / found.variables[0]
    assert abs(np.log10(relative / units)).max() <= 0.7


@pytest.mark.parametrize("decades", [2.0, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_units_are_recovered_from_values_and_slopes_that_vary_by_chance(seed: int, decades: float) -> None:
    draw = np.random.default_rng(seed)
    units = 10.0 ** draw.uniform(-decades, decades, 60)
    x, gradient, jacobian = draw.standard_normal(60), draw.standard_normal(60), draw.standard_normal((4, 60))
    found = automatic_scales(x * units, gradient / units, jacobian / units)
    assert found.variables is not None
    apart = np.log10(found.variables / units)
    assert np.std(apart) < 0.5 and abs(apart - np.median(apart)).max() < 2.0


def test_all_factors_are_powers_of_two() -> None:
    draw = np.random.default_rng(0)
    x, gradient = 10.0 ** draw.uniform(-6, 6, 8), 10.0 ** draw.uniform(-6, 6, 8)
    scales = automatic_scales(x, gradient, 10.0 ** draw.uniform(-6, 6, (3, 8)))
    assert scales.variables is not None
    factors = np.concatenate([[scales.objective], scales.constraints, scales.variables])
    assert (np.log2(factors) == np.round(np.log2(factors))).all()


def steep_and_flat(x: Tensor) -> Tensor:
    return 1e4 * x[0].abs() + (1e-3 * x[1] - 1) ** 2


def curved_kink(x: Tensor) -> Tensor:
    return 2 * (1e4 * x[0] * x[1] - 1).abs() + 2 * (torch.exp(-x[0]) + torch.exp(-x[1]) - 1.0001).abs()


@pytest.mark.parametrize("scaling", ["auto", "none"])
@pytest.mark.parametrize(("function", "start"), [(steep_and_flat, [1.0, 0.0]), (curved_kink, [0.0, 1.0])])
def test_a_steep_variable_does_not_hide_a_flat_one(function: object, start: list[float], scaling: str) -> None:
    result = minimize(function, torch.tensor(start, dtype=torch.float64), compile="never", scaling=scaling)
    assert result.status is not Status.STATIONARY or result.f <= 1e-4  # the minimum is 0


def test_everything_the_user_sees_is_in_the_units_of_the_user() -> None:
    units = torch.tensor([1e-5, 1.0, 1e4], dtype=torch.float64)

    def function(x: Tensor) -> tuple[Tensor, Tensor, None]:
        y = x / units
        return 1e5 * ((y - 2) ** 2).sum(), 1e-4 * (y[:1] - 1), None

    seen: list[Tensor] = []
    result = minimize(function, 0.5 * units, compile="never", callback=lambda state: seen.append(state.x))
    assert result.scales is not None and result.scales.variables is not None and result.success
    torch.testing.assert_close(result.x / units, torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64), rtol=1e-4, atol=0)
    torch.testing.assert_close(seen[0], 0.5 * units)
    torch.testing.assert_close(seen[-1], result.final.x)
    assert result.f == pytest.approx(1e5, rel=1e-4)
    assert result.history.f[-1] == pytest.approx(result.f)
    assert float(result.multipliers.inequalities) == pytest.approx(2e9, rel=1e-3)
    assert result.check().stationary


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("name", ["hs100", "hs34", "hs65", "hs66", "hs86", "shor"])
def test_values_beside_0_say_as_little_as_0(name: str, size: float) -> None:
    """A start may differ from 0 by rounding alone; taken for units, such values cost hs86 ten times the evaluations."""
    problem = ALL[name]
    start = problem.initial()
    noise = torch.randn(start.shape, dtype=start.dtype, generator=torch.Generator().manual_seed(1))
    beside = torch.where(start == 0, size * noise, start)
    assert 0 < (beside != start).sum() < len(start)
    expected, result = (minimize(problem.function, x, compile="never", max_evaluations=3000) for x in (start, beside))
    assert result.status is expected.status is Status.STATIONARY
    assert result.f == pytest.approx(expected.f, rel=1e-6, abs=1e-6)
    assert result.evaluations <= 1.5 * expected.evaluations
