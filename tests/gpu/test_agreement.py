"""verify on a GPU: the variants that only run there, and generators of the device."""

from __future__ import annotations

import pytest
import torch

from compile_inspect import verify
from compile_inspect.records import Verdict

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
