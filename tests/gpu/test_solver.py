"""The solver with variables on a GPU, in double and single precision, against the answers of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, Status, minimize
from problems import PUBLISHED

pytestmark = pytest.mark.gpu
NAMES = ("A1", "A3", "B3", "C1")


@pytest.fixture(autouse=True)
def needs_cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def solve(name: str, device: str, dtype: torch.dtype) -> Result:
    problem = PUBLISHED[name]()
    start = problem.start.reshape(-1).to(device, dtype)
    function: Callable[[Tensor], object] = lambda x: problem.function(problem.unflatten(x))  # noqa: E731
    return minimize(function, start)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_same_answer_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    expected = solve(name, "cpu", torch.float64)
    found = solve(name, "cuda:0", dtype)
    accuracy = 1e-6 if dtype == torch.float64 else 1e-3
    assert found.x.device.type == "cuda" and found.x.dtype == dtype
    assert found.status is Status.STATIONARY and expected.status is Status.STATIONARY
    assert abs(found.f - expected.f) <= accuracy * max(1.0, abs(expected.f))
    assert found.violation <= (1e-6 if dtype == torch.float64 else 1e-4)
    assert found.check().stationary
