"""Problems without a lower bound say so; those that only look like it do not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import nonsmooth
from nonsmooth import Status

minimize = partial(nonsmooth.minimize, scaling="none", structure="off")  # so that runs go where these tests want them


def product(weight: float, power: int) -> Any:
    """Feasible far out only where an even number of variables is negative; no straight line from the start leads there."""
    return lambda x: (x.sum(), 1 - weight * x.prod() ** power, None)


UNBOUNDED = {
    "product": (product(1e-3, 1), [1.0, 1.0, 1.0]),
    "product-small": (product(1e-5, 1), [1.0, 2.0, 1.0]),
    "product-cubed": (product(1e-2, 3), [2.0, 1.0, 1.0]),
    "squares": (lambda x: (-x.square().sum(), x[0] * x[1] - 1, None), [2.0, 0.1]),
    "exponential": (lambda x: -x[0].exp() + x[1].abs(), [1.0, 1.0]),
    "line": (lambda x: (x[0], x[1] - x[0], None), [1.0, 0.0]),
    "cubic": (lambda x: x[0] ** 3 + (x[1] - x[0] ** 2).abs(), [1.0, 1.0]),
    "hyperbola": (lambda x: (-x[0], x[1] * x[0] - 1, None), [1.0, 0.5]),
}

BOUNDED: dict[str, tuple[Any, list[float]]] = {
    "far": (lambda x: (-x.sum(), x.square().sum() - 1e30, None), [1.0, 1.0]),
    "deep": (lambda x: -1e25 * torch.exp(-((x[0] - 3) ** 2)) + x[1].abs(), [-4.0, 1.0]),
    "offset": (lambda x: 1e6 * (x[0] - 1e8).abs() + x[1].abs() - 1e30, [1.0, 1.0]),
    "asymptote": (lambda x: -1e6 * torch.atan(x[0]) + x[1].abs(), [1.0, 1.0]),
    "decay": (lambda x: torch.exp(-x[0]) + x[1].abs(), [1.0, 1.0]),
    "product-in-a-box": (lambda x: (x.sum(), torch.cat([(1 - 1e-3 * x.prod())[None], x.abs() - 1e16]), None), [1.0, 1.0, 1.0]),
}


def start(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "threshold"),
    [*((name, float("inf")) for name in UNBOUNDED), *((name, 0.1) for name in UNBOUNDED if name != "product-cubed")],
)  # scaled, that one ends at a local minimum
def test_a_fall_that_only_overflow_ends_is_unbounded(name: str, threshold: float) -> None:
    function, values = UNBOUNDED[name]
    result = minimize(function, start(values), prescaling_threshold=threshold)
    assert result.status is Status.UNBOUNDED
    assert result.f < -1e13 and result.point.feasible and not result.success


@pytest.mark.parametrize("name", BOUNDED)
def test_a_deep_minimum_is_not_unbounded(name: str) -> None:
    function, values = BOUNDED[name]
    for limit in (4, 8, 1000):  # also where it is asked on the way down
        assert minimize(function, start(values), max_iterations=limit).status is not Status.UNBOUNDED


def test_a_floor_that_is_met_later_is_not_unbounded() -> None:
    """The search fails far down, while f still falls; farther along it ends."""

    def function(x: Tensor) -> Tensor:
        step = -1e3 * x[0] if float(x[0].detach()) < 1e15 else x[0] * float("nan")
        return torch.maximum(step, x.new_tensor(-1e40))

    def floor(x: Tensor) -> Any:
        return torch.maximum(-(x[0] ** 3), x.new_tensor(-1e45)) + x[1].abs(), None, None

    assert minimize(floor, start([1.0, 1.0])).status is not Status.UNBOUNDED
    assert minimize(function, start([1.0])).f >= -1e18
