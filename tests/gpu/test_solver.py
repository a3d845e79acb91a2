"""The solver with variables on a GPU, in double and single precision, against the answers of the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nonsmooth import Result, Status, minimize
from nonsmooth.compile import CompileOutcome
from nonsmooth.compile.cuda_graphs import record_cuda_graphs
from nonsmooth.compile.flat import flat_form
from nonsmooth.evaluate import Evaluator
from nonsmooth.problem import Problem
from nonsmooth.variables import Variables
from problems import PUBLISHED

pytestmark = pytest.mark.gpu
NAMES = ("A1", "A3", "B3", "C1")


@pytest.fixture(autouse=True)
def needs_cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    # Recordings are made after 10 ms where this is imported already, after a second where it is not.
    importlib.import_module("torch._dynamo")


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
    # Some draws end at the iteration limit, with the recording as without it, at the same point (seed 7, on an H200).
    torch.manual_seed(0)
    data = torch.randn(30, 2000, dtype=torch.float64, device="cuda")
    start = torch.nn.functional.normalize(torch.randn(30, dtype=torch.float64, device="cuda"), dim=0)

    def dictionary(q: Tensor) -> object:
        return (q @ data).abs().sum() / 2000, None, q @ q - 1

    plain, result = minimize(dictionary, start, compile="never"), minimize(dictionary, start)
    assert result.compilation.outcome is CompileOutcome.USED, result.compilation
    assert result.compilation.evaluations > 20
    assert result.success and abs(result.f - plain.f) < 1e-8
    data.mul_(2.0)  # in place: the recording reads it as it is
    plain, result = minimize(dictionary, start, compile="never"), minimize(dictionary, start)
    assert result.success and abs(result.f - plain.f) < 1e-8


def test_functions_that_wait_for_a_value_stay_eager() -> None:
    def waiting(x: Tensor) -> Tensor:
        return x.square().sum() * (2.0 if float(x[0]) > 0 else 1.0)

    result = minimize(waiting, torch.ones(3, dtype=torch.float64, device="cuda"), max_iterations=30)
    assert result.compilation.outcome in (CompileOutcome.REFUSED, CompileOutcome.NOT_WORTH_IT), result.compilation
    assert float(result.x.abs().max()) < 1e-3


def test_a_trace_is_recorded_too() -> None:
    """Its gradient waits for a number of the device; in a recording it is computed in another way."""
    matrix = (lambda a: a + a.T)(torch.randn(12, 12, dtype=torch.float64, device="cuda"))
    identity = torch.eye(3, dtype=torch.float64, device="cuda")
    start = torch.linalg.qr(torch.randn(12, 3, dtype=torch.float64, device="cuda"))[0].contiguous()

    def function(basis: Tensor) -> object:
        return -torch.trace(basis.T @ matrix @ basis), None, basis.T @ basis - identity

    result = minimize(function, start)
    assert result.compilation.outcome is CompileOutcome.USED, result.compilation
    assert result.success
    assert result.f == pytest.approx(-float(torch.linalg.eigvalsh(matrix)[-3:].sum()), abs=1e-6)


def test_one_synchronization_for_an_evaluation() -> None:
    """With a recording: the point goes up, values and gradients come down, and the host waits once."""
    data = torch.randn(30, 2000, dtype=torch.float64, device="cuda")
    start = torch.nn.functional.normalize(torch.randn(30, dtype=torch.float64, device="cuda"), dim=0)

    def dictionary(q: Tensor) -> object:
        return (q @ data).abs().sum() / 2000, None, q @ q - 1

    evaluator = Evaluator(Problem(dictionary), Variables(start))
    trial = evaluator(evaluator.variables.start)
    assert evaluator.forms is not None
    form = flat_form(evaluator.problem, evaluator.variables, evaluator.forms)
    compiled = record_cuda_graphs(form, trial.x, torch.device("cuda"))
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


def test_a_module_is_recorded() -> None:
    """Its parameters are written to within the recording; it ends up holding the answer."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1)).double().cuda()
    data = torch.randn(200, 8, dtype=torch.float64, device="cuda")
    target = data[:, :1].abs() - data[:, 1:2]

    def function(network: torch.nn.Module) -> object:
        return (network(data) - target).abs().mean(), None, None

    before = [parameter.detach().clone() for parameter in module.parameters()]
    plain = minimize(function, module, compile="never", structure="off", max_iterations=150)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), before, strict=True):
            parameter.copy_(value)
    result = minimize(function, module, structure="off", max_iterations=150)
    assert result.compilation.outcome is CompileOutcome.USED, result.compilation
    assert result.f == pytest.approx(float(function(module)[0]), rel=1e-12)  # type: ignore[index]
    assert result.f < 1.2 * plain.f + 1e-6


def test_what_cannot_be_recorded_does_not_keep_others_from_being() -> None:
    data = torch.randn(30, 2000, dtype=torch.float64)
    start = torch.nn.functional.normalize(torch.randn(30, dtype=torch.float64, device="cuda"), dim=0)

    def sending(q: Tensor) -> object:
        return (q @ data.to(q.device)).abs().sum() / 2000, None, q @ q - 1

    there = data.cuda()

    def dictionary(q: Tensor) -> object:
        return (q @ there).abs().sum() / 2000, None, q @ q - 1

    for _ in range(3):
        refused = minimize(sending, start, structure="off")
        assert refused.compilation.outcome is CompileOutcome.REFUSED, refused.compilation
        used = minimize(dictionary, start, structure="off")
        assert used.compilation.outcome is CompileOutcome.USED, used.compilation
        assert refused.success and used.success and abs(refused.f - used.f) < 1e-8


def test_pairs_beside_the_variables() -> None:
    """With many variables the last pairs lie on the device; the answer is that of the host."""
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(5000, generator=generator, dtype=torch.float64)
    scale = 1.0 + torch.rand(5000, generator=generator, dtype=torch.float64)
    results = {}
    for device in ("cpu", "cuda"):
        a, s = center.to(device), scale.to(device)

        def separable(x: Tensor, a: Tensor = a, s: Tensor = s) -> Tensor:
            return (s * (x - a).square()).sum() + 0.1 * x.abs().sum()

        results[device] = minimize(separable, torch.zeros(5000, dtype=torch.float64, device=device), max_iterations=60)
    assert results["cuda"].f == pytest.approx(results["cpu"].f, rel=1e-6)
    kept = results["cuda"].state.hessian._storage
    assert type(kept).__name__ == "DevicePairs" and kept._both.device.type == "cuda"
