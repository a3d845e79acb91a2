"""Full steps end exactly on kinks of variables and of differences of two."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize
from nonsmooth.native import load

pytestmark = pytest.mark.skipif(load() is None, reason="without the native library kinks are reached to eleven digits")


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


UNITS = {"natural": (0.0, 0.0), "mixed": (-3.0, 3.0)}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("seed", range(4))
def test_zeros_of_a_lasso_are_zeros(seed: int, units: str) -> None:
    a, b = draw(seed, 40, 15), draw(seed + 100, 40)
    scale = 10.0 ** torch.linspace(*UNITS[units], 15, dtype=torch.float64)
    result = minimize(
        lambda x: 0.5 * (a @ (x * scale) - b).square().sum() + 6 * (x * scale).abs().sum(), torch.ones(15) / scale
    )
    natural = torch.as_tensor(result.x) * scale
    assert result.status is Status.STATIONARY
    assert 0 < int((natural == 0).sum()) == int((natural.abs() < 1e-6).sum()) == result.structure.exact


@pytest.mark.parametrize("seed", range(4))
def test_a_fused_lasso_is_exactly_flat_and_exactly_zero(seed: int) -> None:
    signal = draw(seed, 60) + torch.tensor([0.0, 3.0, 0.0], dtype=torch.float64).repeat_interleave(20)

    def function(x: Tensor) -> Tensor:
        return 0.5 * (x - signal).square().sum() + 2.0 * x.diff().abs().sum() + 0.3 * x.abs().sum()

    result = minimize(function, torch.zeros(60, dtype=torch.float64))
    x = torch.as_tensor(result.x)
    assert result.status is Status.STATIONARY
    assert int((x.diff() == 0).sum()) == int((x.diff().abs() < 1e-6).sum()) > 40
    assert int((x == 0).sum()) == int((x.abs() < 1e-6).sum())


def test_zeros_under_a_constraint() -> None:
    a, b = draw(7, 40, 20), draw(8, 40)
    result = minimize(lambda x: ((a @ x - b).square().sum(), x.abs().sum() - 0.5, None), draw(9, 20))
    x = torch.as_tensor(result.x)
    assert result.status is Status.STATIONARY
    assert 3 < int((x == 0).sum()) == int((x.abs() < 1e-6).sum()) == result.structure.exact
    assert all(source.constraint for source in result.structure.sources)


def test_constants_are_reached_as_nearly_as_numbers_can_be() -> None:
    result = minimize(lambda x: (x - 0.3).abs().sum() + 0.1 * x.square().sum(), torch.tensor([1.0, -2.0], dtype=torch.float64))
    np.testing.assert_allclose(torch.as_tensor(result.x).numpy(), 0.3, rtol=1e-15)


def test_single_precision_lands_too() -> None:
    target = draw(1, 10).float()
    result = minimize(lambda x: (x - target).square().sum() + 1.5 * x.abs().sum(), torch.ones(10))
    assert int((result.x == 0).sum()) == int((target.abs() <= 0.75).sum())
