"""Functions on which a fixed tolerance would cry wolf, or a naive comparison would trip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from compile_inspect import Target, verify
from compile_inspect.records import Verdict

pytestmark = pytest.mark.usefixtures("unhurried")

FAST = ["eager-backend", "aot_eager"]
INDUCTOR = [*FAST, "inductor", "inductor-callable"]
generator = torch.Generator().manual_seed(0)


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=generator).to(dtype)


def chain(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(8):
        x = (x @ w).tanh() @ w.t()
    return x.softmax(-1)


def normalized(x: Tensor) -> Tensor:
    return functional.layer_norm(x * 1000 + 1e4, (x.shape[-1],)).sum(0)


def canceling(x: Tensor) -> Tensor:
    return (x.sum() - x.flip(0).sum()) + (x.sin().square() + x.cos().square() - 1).sum()


def tied(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x.round()
    return y.argmax(-1), y.max(0).indices, (y * 0.1).sort(-1).indices


def with_nan(x: Tensor) -> Tensor:
    return x.sqrt() + x.log() + 1 / x.round()


def in_place(x: Tensor) -> Tensor:
    y = x * 2
    x.mul_(3)
    x[0] = 0
    return y + x


def half(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).gelu() if hasattr(x, "gelu") else functional.gelu(x @ w).softmax(-1).log()


def thresholds(x: Tensor) -> tuple[Tensor, Tensor]:
    scaled = x * 3 / 3
    return (scaled > x).float().sum(), torch.floor(scaled / x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "chain of products": (chain, (draw(32, 64), draw(64, 64) / 4)),
    "layer norm": (normalized, (draw(16, 33),)),
    "cancellation": (canceling, (draw(4097),)),
    "ties": (tied, (draw(7, 9),)),
    "not a number": (with_nan, (draw(50),)),
    "in place": (in_place, (draw(4, 3),)),
    "bfloat16": (half, (draw(8, 16, dtype=torch.bfloat16), draw(16, 16, dtype=torch.bfloat16))),
    "float64": (chain, (draw(32, 64, dtype=torch.float64), draw(64, 64, dtype=torch.float64) / 4)),
    "thresholds": (thresholds, (draw(200),)),
}


@pytest.mark.parametrize("case", CASES)
def test_with_eager_kernels(case: str) -> None:
    function, inputs = CASES[case]
    found = verify(function, *inputs, variants=FAST)
    assert [item.verdict for item in found.variants] == [Verdict.AGREES] * 2, str(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
def test_with_inductor(case: str) -> None:
    function, inputs = CASES[case]
    found = verify(function, *inputs, variants=INDUCTOR)
    assert found.agrees, str(found)
    assert found.variant("inductor").verdict is Verdict.AGREES


@pytest.mark.exhaustive
def test_gradients_of_a_small_network_with_inductor() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    found = verify(model, draw(5, 8), gradients=True, variants=["inductor", "inductor-callable", "torchscript/trace"])
    assert found.variant("inductor").verdict is Verdict.AGREES
    assert found.variant("inductor-callable").verdict is Verdict.AGREES
    assert found.reference and found.gradients
    names = {item.name for item in found.variant("inductor").measured}
    assert names == {"result", *(f"gradient of {name}" for name, _ in model.named_parameters())}


def test_batch_norm_in_training_sees_the_same_statistics_every_time() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5)).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = verify(model, draw(9, 6), gradients=True, variants=[*FAST, "torchscript/trace"])
    assert all(item.verdict in (Verdict.AGREES, Verdict.ASSUMES) for item in found.variants), str(found)
    assert "1.running_mean after the call" in {item.name for item in found.variant("aot_eager").measured}
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_dropout_is_compared_from_the_same_seed() -> None:
    def function(x: Tensor) -> Tensor:
        return functional.dropout(x, 0.5) * 2

    torch.manual_seed(5)
    state = torch.get_rng_state()
    found = verify(function, draw(40), variants=[*FAST, "inductor-callable"])
    assert torch.equal(torch.get_rng_state(), state)  # the user's generator was not moved
    assert [item.verdict for item in found.variants[:2]] == [Verdict.AGREES] * 2, str(found)
    assert found.variants[2].verdict is Verdict.REFUSED
    assert "result: random; every run starts from the same seed" in found.notes


@pytest.mark.exhaustive
def test_dropout_in_inductor_is_compared_with_eager_random_numbers() -> None:
    def function(x: Tensor) -> Tensor:
        return functional.dropout(x, 0.5) * 2

    found = verify(function, draw(40), variants=["inductor"]).variant("inductor")
    assert found.verdict is Verdict.AGREES and "fallback_random" in found.notes[-1]


class Pair(NamedTuple):
    first: Tensor
    rest: dict[str, Any]


@dataclass
class Boxed:
    value: Tensor
    label: str


def test_nested_results_of_several_kinds() -> None:
    def function(x: Tensor, *, flags: list[Tensor]) -> Any:
        return Pair(x.sin(), {"count": 3, "mask": x > flags[0], "text": "yes", "ints": [x.argmax(), x.to(torch.int32)]}), None

    found = verify(function, draw(6), flags=[draw(6)], variants=FAST)
    assert all(item.verdict is Verdict.AGREES for item in found.variants), str(found)

    def boxed(x: Tensor) -> Boxed:
        return Boxed(x.cos(), "cosine")

    found = verify(boxed, draw(6), variants=FAST)
    assert all(item.verdict is Verdict.AGREES for item in found.variants), str(found)
    assert found.variants[0].measured[0].name == "result.value"


def test_complex_numbers_and_strides() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.fft.fft(x.t()).abs() + y.expand(5, 4)

    x = torch.randn(4, 5, dtype=torch.complex64, generator=generator)[:, ::1].t().contiguous().t()
    found = verify(function, x, draw(1, 4).expand(5, 4), variants=FAST)
    assert all(item.verdict is Verdict.AGREES for item in found.variants), str(found)
    assert found.reference


def test_indices_stay_valid() -> None:
    def function(table: Tensor, rows: Tensor) -> Tensor:
        return table[rows] * 2

    found = verify(function, draw(3, 4), torch.tensor([2, 0, 1, 1]), variants=FAST)
    assert all(item.verdict is Verdict.AGREES for item in found.variants), str(found)
    assert any("uses integers as indices or sizes" in text for text in found.variants[0].not_probed)


def test_where_eager_raises_at_generated_inputs_a_variant_must_raise_too() -> None:
    def function(x: Tensor) -> Tensor:
        if (x <= 0).any():
            raise ValueError("positive numbers only")
        return x.log()

    found = verify(function, torch.rand(8) + 0.5, variants=["eager-backend", "torchscript/trace"])
    right, wrong = found.variants
    assert right.verdict is Verdict.AGREES and "eager raises there" in right.not_probed[-1]
    assert wrong.verdict is Verdict.DISAGREES and wrong.blame is not None
    assert wrong.blame.location is not None and wrong.blame.location.code == "if (x <= 0).any():"
    assert "eager raises ValueError: positive numbers only and the variant does not" in wrong.reason


def test_a_function_that_raises_must_raise_in_every_variant() -> None:
    def function(x: Tensor) -> Tensor:
        if x.shape[0] == 3:
            raise KeyError("three")
        return x * 2

    target = Target(function, (draw(2),), further=(((draw(3),), {}), ((draw(4),), {})))
    found = verify(target, variants=["eager-backend", "torchscript/trace", "inductor-callable"])
    assert found.variant("eager-backend").verdict is Verdict.AGREES
    trace = found.variant("torchscript/trace")
    assert trace.verdict is Verdict.DISAGREES
    assert "eager raises KeyError" in trace.reason
    assert "further inputs 1 were left out" in found.variant("inductor-callable").notes[0]


def test_a_function_without_a_float64_reference_says_so() -> None:
    def function(x: Tensor) -> Tensor:
        return x.view(torch.int32).float() + x

    found = verify(function, draw(5), variants=["aot_eager"])
    assert not found.reference or any("float64" in note for note in found.notes)
    assert found.variants[0].verdict is Verdict.AGREES, str(found)


def test_inputs_and_state_are_left_as_they_were() -> None:
    x = draw(4, 3)
    before = x.clone()
    verify(in_place, x, variants=[*FAST, "torchscript/trace", "inductor-callable"])
    assert torch.equal(x, before)
