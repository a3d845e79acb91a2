"""verify on a GPU: the variants that only run there, and generators of the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from compile_inspect import verify
from compile_inspect.records import Verdict
from compile_inspect.variants import Prepared, Task, Variant

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def test_every_variant_of_a_small_network_agrees() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8)
    ).cuda()
    found = verify(model, torch.randn(32, 64, device="cuda"), gradients=True)
    assert found.agrees, str(found)
    assert {"inductor/reduce-overhead", "cuda-graph/inductor"} <= {item.name for item in found.variants if item.agrees}


def test_dropout_leaves_the_generator_of_the_device_alone() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5)

    x = torch.ones(1000, device="cuda")
    before = torch.cuda.get_rng_state()
    found = verify(function, x, variants=["eager-backend", "inductor"])
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert found.variant("eager-backend").verdict is Verdict.AGREES
    assert found.variant("inductor").verdict in (Verdict.AGREES, Verdict.RANDOM), str(found)


def test_a_frozen_number_is_found_in_a_cuda_graph() -> None:
    scale = 2.0

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * scale

    found = verify(function, torch.ones(8, device="cuda"), variants=["cuda-graph/eager", "cuda-graph/inductor"])
    assert all(item.assumptions == ("scale stays 2.0",) for item in found.variants), str(found)


def test_half_precision_products_raise_no_alarm() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x @ w).softmax(-1)

    x, w = (torch.randn(256, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    found = verify(function, x, w, variants=["inductor", "inductor/max-autotune"])
    assert found.agrees, str(found)


@pytest.fixture
def tensor_cores() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


class Products(torch.nn.Module):
    """Products of float32 matrices one after the other, a convolution and attention: all of them may use TF32."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)), torch.nn.LayerNorm(64))
        self.mix = torch.nn.Conv1d(16, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(self.layers(x))
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.usefixtures("tensor_cores")
@pytest.mark.parametrize("seed", range(4))
def test_tensor_cores_raise_no_alarm(seed: int) -> None:
    torch.manual_seed(seed)
    with torch.device("cuda"):
        model, x = Products().eval(), torch.randn(8, 16, 64)
    found = verify(model, x, variants=["inductor", "cuda-graph/inductor"])
    assert found.agrees, str(found)


@dataclass(frozen=True)
class Faulty(Variant):
    fault: Callable[[torch.Tensor], torch.Tensor]

    @property
    def name(self) -> str:
        return "faulty"

    def build(self, task: Task) -> Prepared:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self.fault(task.function(*args, **kwargs))

        return Prepared(self, lambda *args, **kwargs: task.run(call, args, kwargs), call, 0.0)


@pytest.mark.usefixtures("tensor_cores")
@pytest.mark.parametrize("fault", [lambda y: y * 1.01, lambda y: y + 0.02, lambda y: y.roll(1, -1)])
def test_faults_show_through_the_noise_of_tensor_cores(fault: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(0)
    with torch.device("cuda"):
        model, x = Products().eval(), torch.randn(8, 16, 64)
    assert not verify(model, x, variants=[Faulty(fault)], gradients=False).agrees
