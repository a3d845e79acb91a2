"""Bounds and starts as people give them who come from scipy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch

import nonsmooth
from nonsmooth import ProblemError, minimize

PAIRS = [(1.0, 2.0), (-1.0, 0.5), (0.0, 3.0)]


def distance(x: torch.Tensor) -> torch.Tensor:
    return (x - 5).abs().sum()


@pytest.mark.parametrize(
    "bounds",
    [
        scipy.optimize.Bounds(*map(list, zip(*PAIRS, strict=True))),
        tuple(zip(*PAIRS, strict=True)),
        ([1.0, -1.0, 0.0], torch.tensor([2.0, 0.5, 3.0])),
        PAIRS,
        tuple(map(list, PAIRS)),
        np.array(PAIRS),
        np.array(PAIRS).T,
        torch.tensor(PAIRS),
        [(1, 2), (np.float32(-1), torch.tensor(0.5)), (None, 3.0)],
    ],
    ids=["Bounds", "transposed", "lists and tensors", "pairs", "lists", "array", "array of sides", "tensor", "mixed"],
)
def test_all_forms_are_the_same_box(bounds: Any) -> None:
    result = minimize(distance, torch.tensor([1.5, 0.0, 1.0]), bounds=bounds)
    assert result.success
    torch.testing.assert_close(result.x, torch.tensor([2.0, 0.5, 3.0]), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (PAIRS[:2], r"is a tuple of 2, and x0 has 1 variable with 3 numbers"),
        ([*PAIRS, (0.0, 1.0)], r"pair \(low, high\) for each of the 3 numbers of x0, not a list of 4"),
        ((1, 2, 3), r"pair \(low, high\) for each of the 3"),
        ([(1.0, 2.0, 3.0)] * 3, r"pair \(low, high\) for each of the 3"),
        ([(1.0, 2.0), (2.0, 1.0), (0.0, 0.0)], "lower bound 2.0 is above upper bound 1.0 at position 1"),
        ([(1.0, float("nan"))] * 3, "a bound is NaN"),
        (5.0, "bounds must be a pair"),
        ("ab", "bounds must be a pair"),
    ],
)
def test_other_forms_are_explained(bounds: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        minimize(distance, torch.zeros(3), bounds=bounds)


def box(bounds: Any) -> tuple[list[float], list[float]]:
    """What the bounds mean for two numbers: the corners reached from inside."""
    corners = []
    for far in (-50.0, 50.0):
        result = minimize(lambda x, far=far: (x - far).square().sum(), torch.zeros(2).double(), bounds=bounds)
        corners.append([round(value, 4) for value in result.x.tolist()])
    return corners[0], corners[1]


@pytest.mark.parametrize(
    "bounds", [[(0, 1), (2, 3)], ([0, 1], [2, 3]), np.array([[0, 1], [2, 3]]), list(np.array([[0, 1], [2, 3]]))], ids=repr
)
def test_two_rows_of_two_are_refused_where_both_readings_are_boxes(bounds: Any) -> None:
    with pytest.raises(ProblemError) as raised:
        minimize(distance, torch.zeros(2), bounds=bounds)
    assert "Bounds([0.0, 1.0], [2.0, 3.0]) for the first" in str(raised.value)
    assert "Bounds([0.0, 2.0], [1.0, 3.0]) for the second" in str(raised.value)


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        (scipy.optimize.Bounds([0, 1], [2, 3]), [0, 1], [2, 3]),
        ((torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])), [0, 1], [2, 3]),
        ([(-1, 2), (-3, 1)], [-1, -3], [2, 1]),  # as lower and upper bounds, -1 would be above -3
        ([(1, -2), (2, 2)], [1, -2], [2, 2]),  # as a pair, 1 would be above -2
        ([(0, 1), (1, 2)], [0, 1], [1, 2]),  # the same box in both readings
        ([(0, None), (None, 2)], [0, -50], [50, 2]),
        ((-1.0, 4.0), [-1, -1], [4, 4]),
        (([0, 1], None), [0, 1], [50, 50]),
    ],
)
def test_two_rows_of_two_mean_what_only_they_can(bounds: Any, lower: list[float], upper: list[float]) -> None:
    assert box(bounds) == (lower, upper)


def test_one_number_has_one_pair() -> None:
    result = minimize(lambda x: (x - 5).square().sum(), np.zeros(1), bounds=[(0.0, 2.0)])
    assert result.x == pytest.approx([2.0])


@pytest.mark.parametrize(
    "start", [np.array([3.0, -2.0]), [3.0, -2.0], (3, -2), np.array([3, -2]), np.array([3.0, -2.0], dtype=np.float32)], ids=repr
)
def test_arrays_and_lists_are_starts(start: Any) -> None:
    seen: list[torch.Tensor] = []

    def function(x: torch.Tensor) -> Any:
        seen.append(x)
        return (x - 1).abs().sum(), {"sum": x.sum() - 1}, None

    points: list[Any] = []
    result = minimize(function, start, bounds=(-5, 5), callback=lambda state: points.append(state.x))
    assert {(type(x), x.dtype) for x in seen} == {(torch.Tensor, torch.float64)}
    assert result.success and result.f == pytest.approx(1.0)
    for value in (result.x, result.final.x, result.point.x, points[0], result.multipliers.lower, result.multipliers.upper):
        assert type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (2,)
    assert list(start) == [3, -2]  # it was not written to
    assert isinstance(result.multipliers.inequalities["sum"], torch.Tensor)
    assert result.check().stationary
    again = pickle.loads(pickle.dumps(result))
    assert type(again.x) is np.ndarray and type(again.state.x) is np.ndarray


def test_a_matrix_keeps_its_shape() -> None:
    assert minimize(lambda x: (x - 1).square().sum(), [[0.0, 1.0], [2.0, 3.0]]).x.shape == (2, 2)
    assert minimize(lambda x: (x - 1).square().sum(), np.array(3.0)).x == pytest.approx(1.0)


def test_a_readonly_start_gives_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    start = np.ones(2)
    start.flags.writeable = False
    assert minimize(lambda x: x.square().sum(), start).success
    assert not recwarn.list


def test_only_public_names_are_listed() -> None:
    assert dir(nonsmooth) == sorted(nonsmooth.__all__)
