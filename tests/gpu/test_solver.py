"""The solver with variables on a GPU, in double and single precision, against the answers of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, Status, minimize
from nonsmooth.evaluate import Evaluator, Outcome
from nonsmooth.evaluate.flat import flat_form
from nonsmooth.evaluate.recorded import recorded
from nonsmooth.problem import Problem
from nonsmooth.variables import Variables
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


def test_a_trace_is_recorded_too() -> None:
    """Its gradient waits for a number of the device; in a recording it is computed in another way."""
    matrix = (lambda a: a + a.T)(torch.randn(12, 12, dtype=torch.float64, device="cuda"))
    identity = torch.eye(3, dtype=torch.float64, device="cuda")
    start = torch.linalg.qr(torch.randn(12, 3, dtype=torch.float64, device="cuda"))[0].contiguous()

    def function(basis: Tensor) -> object:
        return -torch.trace(basis.T @ matrix @ basis), None, basis.T @ basis - identity

    result = minimize(function, start)
    assert result.compilation.outcome is Outcome.USED, result.compilation
    assert result.success
    assert result.f == pytest.approx(-float(torch.linalg.eigvalsh(matrix)[-3:].sum()), abs=1e-6)


def test_one_synchronisation_for_an_evaluation() -> None:
    """With a recording: the point goes up, values and gradients come down, and the host waits once."""
    data = torch.randn(30, 2000, dtype=torch.float64, device="cuda")
    start = torch.nn.functional.normalize(torch.randn(30, dtype=torch.float64, device="cuda"), dim=0)

    def dictionary(q: Tensor) -> object:
        return (q @ data).abs().sum() / 2000, None, q @ q - 1

    evaluator = Evaluator(Problem(dictionary), Variables(start))
    trial = evaluator(evaluator.variables.start)
    assert evaluator.forms is not None
    form = flat_form(evaluator.problem, evaluator.variables, evaluator.forms)
    compiled = recorded(form, trial.x, torch.device("cuda"))
    compiled(trial.x, evaluator.costs)[2].full()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as seen:
        for step in range(10):
            f, _, derivatives = compiled(trial.x + 0.01 * step, evaluator.costs)
            derivatives.full()
    calls = [event.name for event in seen.events()]
    waits = [name for name in calls if "Synchronize" in name]
    assert len([name for name in waits if "Stream" in name]) == 10, waits
    assert len([name for name in waits if "Device" in name]) <= 2, waits  # the profiler's own
    assert len([name for name in calls if name == "cudaGraphLaunch"]) == 10
    assert abs(f - evaluator(trial.x + 0.09).f) < 1e-12
