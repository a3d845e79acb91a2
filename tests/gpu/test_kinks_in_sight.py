"""Kinks that are read from programs whose tensors are on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nonsmooth import Problem, Status, minimize
from nonsmooth.terms import Abs, Hinge

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def needs_cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


ROWS, TARGET, SIGNAL = draw(0, 60, 20), draw(1, 60), draw(2, 80)


def lasso(device: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    rows, target = ROWS.to(device), TARGET.to(device)
    return lambda x: 0.5 * (rows @ x - target).square().sum() + 10 * x.abs().sum(), draw(3, 20).to(device)


def variation(device: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    signal = SIGNAL.to(device)
    return lambda x: 0.5 * (x - signal).square().sum() + x.diff().abs().sum(), torch.zeros_like(signal)


def minimax(device: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    rows, target = ROWS.to(device), TARGET.to(device)
    return lambda x: (rows @ x - target).abs().max() + 0.1 * x @ x, draw(3, 20).to(device)


def bounded(device: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    rows, target = ROWS.to(device), TARGET.to(device)
    return lambda x: ((rows @ x - target).square().sum(), x.abs().sum() - 0.5, None), draw(3, 20).to(device)


PROBLEMS = {"lasso": lasso, "variation": variation, "minimax": minimax, "bounded": bounded}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_answer_is_that_on_the_cpu(name: str) -> None:
    function, start = PROBLEMS[name]("cuda")
    result = minimize(function, start, compile="never")
    there, begin = PROBLEMS[name]("cpu")
    other = minimize(there, begin, compile="never")
    assert result.x.device.type == "cuda"
    assert result.status is other.status is Status.STATIONARY and result.check().stationary
    assert result.f == pytest.approx(other.f, rel=1e-8)
    assert result.structure.followed and result.structure.active == other.structure.active
    if name != "minimax":  # whether the entries of a maximum are equal to the last digit is chance
        assert result.structure.exact == other.structure.exact


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(6, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.layer(x)))[:, 0]


def test_a_module_with_an_l1_loss() -> None:
    inputs, targets = draw(4, 40, 6).cuda(), draw(5, 40).cuda()
    module = Network().double().cuda()

    def loss(network: Network) -> Tensor:
        weights = sum(weight.square().sum() for weight in network.parameters())
        return (network(inputs) - targets).abs().mean() + 1e-2 * weights

    before = float(loss(module).detach())
    result = minimize(loss, module, compile="never", max_evaluations=2000)
    assert result.structure.followed and result.f < 0.8 * before
    assert float(loss(module).detach()) == pytest.approx(result.f, rel=1e-12)


def test_named_terms() -> None:
    rows, target = ROWS.cuda(), TARGET.cuda()
    problem = Problem(
        smooth=lambda x: 0.5 * (rows @ x - target).square().sum(), terms=[Abs(lambda x: x, weight=10.0), Hinge(lambda x: x - 1)]
    )
    result = minimize(problem, draw(3, 20).cuda(), compile="never")
    plain = minimize(
        lambda x: 0.5 * (rows @ x - target).square().sum() + 10 * x.abs().sum() + torch.relu(x - 1).sum(),
        draw(3, 20).cuda(),
        compile="never",
    )
    assert result.status is Status.STATIONARY
    assert result.f == pytest.approx(plain.f, rel=1e-8)


def test_single_precision_on_the_gpu() -> None:
    target = draw(6, 50).float().cuda()
    result = minimize(lambda x: (x - target).square().sum() + 1.5 * x.abs().sum(), torch.ones(50, device="cuda"))
    assert int((result.x == 0).sum()) == int((target.abs() <= 0.75).sum())


def test_many_variables() -> None:
    """Limited memory: pairs and gradients lie on the GPU."""
    n = 20_000
    weights = torch.linspace(1, 3, n, dtype=torch.float64, device="cuda")
    rows, target = draw(7, 30, n).cuda() / n**0.5, draw(8, n).cuda()

    def function(x: Tensor) -> Tensor:
        return 0.5 * (weights * (x - target).square()).sum() + 20 * (rows @ x).abs().sum()

    result = minimize(function, torch.zeros(n, dtype=torch.float64, device="cuda"), compile="never", max_evaluations=500)
    assert result.status is Status.STATIONARY and result.structure.active > 0
