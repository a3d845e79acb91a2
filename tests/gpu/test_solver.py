"""The solver with variables on a GPU, in double and single precision, against the answers of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, Status, minimize
from nonsmooth.evaluate import Outcome
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


def test_functions_run_as_one_launch() -> None:
    """After the first evaluations a CUDA graph takes over; the run ends where it ends without."""
    data = torch.randn(30, 2000, dtype=torch.float64, device="cuda")
    start = torch.nn.functional.normalize(torch.randn(30, dtype=torch.float64, device="cuda"), dim=0)

    def dictionary(q: Tensor) -> object:
        return (q @ data).abs().sum() / 2000, None, q @ q - 1

    plain, result = minimize(dictionary, start, compile="never"), minimize(dictionary, start)
    assert result.compilation.outcome is Outcome.USED, result.compilation
    assert result.compilation.evaluations > 20
    assert result.success and abs(result.f - plain.f) < 1e-8
    data.mul_(2.0)  # in place: the recording reads it as it is
    plain, result = minimize(dictionary, start, compile="never"), minimize(dictionary, start)
    assert result.success and abs(result.f - plain.f) < 1e-8


def test_functions_that_wait_for_a_value_stay_eager() -> None:
    def waiting(x: Tensor) -> Tensor:
        return x.square().sum() * (2.0 if float(x[0]) > 0 else 1.0)

    result = minimize(waiting, torch.ones(3, dtype=torch.float64, device="cuda"), max_iterations=30)
    assert result.compilation.outcome in (Outcome.REFUSED, Outcome.NOT_WORTH_IT), result.compilation
    assert float(result.x.abs().max()) < 1e-3
