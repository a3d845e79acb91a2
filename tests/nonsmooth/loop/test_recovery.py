"""Verdicts of points that steps do not leave: infeasible, unbounded, overflown."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nonsmooth import Status, minimize


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_a_corner_of_the_box_where_the_violation_has_no_slope_is_left(n: int, seed: int) -> None:
    start = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    result = minimize(lambda x: (x.sum(), None, x.prod()[None] - 0.1), start, bounds=(0, 3), compile="never")
    assert result.status is Status.STATIONARY and result.f == pytest.approx(n * 0.1 ** (1 / n), rel=1e-3)


@pytest.mark.parametrize("n", [3, 5])
def test_a_corner_made_by_constraints_is_left_too(n: int) -> None:
    def function(x: Tensor) -> Any:
        return x.sum(), torch.cat([1 - x[:-1] * x[1:], -x]), None

    result = minimize(function, torch.zeros(n, dtype=torch.float64), compile="never")
    assert result.status is not Status.INFEASIBLE


@pytest.mark.parametrize("bound", [1e21, 1e25, 1e100])
def test_a_very_far_bound_is_a_bound(bound: float) -> None:
    result = minimize(lambda x: -x[0], tensor(1.0), bounds=(0, bound), compile="never")
    assert result.status is Status.STATIONARY and float(result.x) == pytest.approx(bound)


def test_a_very_far_minimum_is_a_minimum() -> None:
    result = minimize(lambda x: 1e-30 * x[0] ** 2 - x[0], tensor(1.0), compile="never")
    assert result.status is not Status.UNBOUNDED


def test_what_falls_until_it_overflows_is_unbounded() -> None:
    for function in (lambda x: -x.sum(), lambda x: -(x**2).sum(), lambda x: (x[0] - x[1]).abs() + x[0] ** 3):
        assert minimize(function, tensor(1.0, -1.0), compile="never").status is Status.UNBOUNDED


def test_what_falls_until_it_raises_is_unbounded() -> None:
    def function(x: Tensor) -> Tensor:
        if float(x.detach().abs().max()) > 1e60:
            raise OverflowError
        return -x.sum()

    assert minimize(function, tensor(1.0, 2.0), compile="never").status is Status.UNBOUNDED


def test_points_that_overflow_are_no_answers() -> None:
    result = minimize(lambda x: 1 / torch.log(2 + x[0].abs()), tensor(1.0), compile="never")
    assert result.status is not Status.SOLVER_ERROR
    assert torch.isfinite(result.x).all()


def test_a_pair_without_curvature_at_the_exact_minimum_ends_nothing() -> None:
    start = tensor(-0.4642617834149488, -0.653612436038936)
    result = minimize(lambda x: 0.25 * (x[0] - 1).abs() + (x[1] - 2 * x[0].abs() + 1).abs(), start, compile="never")
    assert result.status is Status.STATIONARY and result.f < 1e-9


def test_functions_that_raise_far_away_are_certified_all_the_same() -> None:
    def function(x: Tensor) -> Tensor:
        if float(x.detach().abs().max()) > 1000:  # the check goes to 2e6, the run does not
            raise ValueError("far outside of what this function is made for")
        return (x[0] - 1).abs() + 1e-7 * (x[1] - 1).abs()

    assert minimize(function, tensor(3.0, 2.0), compile="never").exception is None
