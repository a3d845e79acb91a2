"""Every way of running a function, and what each refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compile_inspect import TargetError, verify
from compile_inspect.torch_private import flatten
from compile_inspect.variants import Prepared, RefusalError, Task, default_variants, named_variants, variant
from compile_inspect.variants.reachable_state import replace_tensors

torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
X = torch.randn(5, 6)
SCALE = 2.0


def structured(x: Tensor, *, factor: float = 1.0) -> dict[str, Any]:
    return {"y": MODEL(x) * SCALE * factor, "rest": [x.sum(), 3, None]}


def loss(x: Tensor) -> Tensor:
    return MODEL(x).square().mean()


TASKS = {
    "module": Task(MODEL, (X,)),
    "structure": Task(structured, (X,), {"factor": 0.5}),
    "gradients": Task(loss, (X.clone().requires_grad_(),), gradients=True),
}
NAMES = ("eager", "eager-backend", "aot_eager", "inductor", "inductor-callable", "aot-inductor", "torchscript/trace")
PREPARED: dict[tuple[str, str], Prepared] = {}


def prepared(task: str, name: str) -> Prepared:
    if (task, name) not in PREPARED:
        PREPARED[task, name] = variant(name).prepare(TASKS[task])
    return PREPARED[task, name]


def assert_equal_steps(first: Any, second: Any) -> None:
    ours, structure = flatten((first.result, first.gradients))
    theirs, other = flatten((second.result, second.gradients))
    assert structure == other
    for here, there in zip(ours, theirs, strict=True):
        if isinstance(here, Tensor):
            torch.testing.assert_close(here.detach(), there.detach(), rtol=1e-5, atol=1e-6)
        else:
            assert here == there


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=pytest.mark.exhaustive if name == "aot-inductor" and kind != "module" else ())
        for kind in TASKS
        for name in NAMES
        if name != "torchscript/trace"
    ],
)
def test_every_variant_gives_what_eager_gives(kind: str, name: str) -> None:
    task = TASKS[kind]
    ready = prepared(kind, name)
    assert ready.build_seconds > 0 and ready.variant.name == name
    for number in range(2):
        torch.manual_seed(number)
        inputs = (torch.randn_like(X).requires_grad_(task.gradients),)
        expected = task.run(task.function, inputs, task.kwargs)
        assert_equal_steps(ready.run(*inputs, **task.kwargs), expected)


def test_a_trace_is_right_where_it_was_traced() -> None:
    assert_equal_steps(prepared("module", "torchscript/trace").run(X), TASKS["module"].run(MODEL, (X,), {}))


def test_inference_needs_no_step_around_it() -> None:
    for name in ("inductor-callable", "aot-inductor"):
        call = prepared("module", name).call
        assert call is not None
        with torch.no_grad():
            torch.testing.assert_close(call(X), MODEL(X), rtol=1e-5, atol=1e-6)


def test_parameters_changed_in_place_are_seen() -> None:
    model = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    ready = variant("inductor-callable").prepare(Task(model, (x,)))
    with torch.no_grad():
        model.weight.mul_(3).add_(1)
    torch.testing.assert_close(ready.run(x).result, model(x).detach())


def test_what_a_function_holds() -> None:
    offset = torch.ones(3)
    weight = 1.5

    def function(x: Tensor) -> Tensor:
        return MODEL(x) * weight + offset * SCALE

    task = Task(function, (X,))
    assert [item.name for item in task.held_tensors] == ["0.weight", "0.bias", "2.weight", "2.bias", "offset"]
    values = {item.name: item.value for item in task.constants}
    assert values == {"weight": 1.5, "SCALE": 2.0, "training": True, "0.training": True, "1.training": True, "2.training": True}
    with replace_tensors(task.held_tensors, [torch.zeros_like(item.now()) for item in task.held_tensors]):
        assert function(X).abs().sum() == 0
    assert offset.sum() == 3 and MODEL[0].weight.abs().sum() > 0
    offset, weight = torch.full((3,), 2.0), 2.5
    assert task.held_tensors[-1].now() is offset


def test_closure_tensors_are_inputs_of_a_graph() -> None:
    offset = torch.ones(3)

    def function(x: Tensor) -> Tensor:
        return x + offset

    ready = variant("inductor-callable").prepare(Task(function, (torch.zeros(3),)))
    offset = torch.full((3,), 7.0)
    assert ready.run(torch.zeros(3)).result.tolist() == [7.0] * 3


REFUSALS = {
    "in place": (lambda x: x.add_(1), "changes its inputs"),
    "random": (lambda x: x + torch.rand(3), "draws random numbers"),
    "branch": (lambda x: x + 1 if x.sum() > 0 else x, "."),
    "item": (lambda x: x * x.sum().item(), "."),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_a_graph_cannot_say_is_refused_in_one_line(kind: str) -> None:
    function, reason = REFUSALS[kind]
    with pytest.raises(RefusalError, match=reason) as refusal:
        variant("inductor-callable").prepare(Task(function, (torch.randn(3),)))
    assert "\n" not in str(refusal.value)


def test_a_tensor_of_a_class_is_an_input_and_not_frozen() -> None:
    class Holder:
        value = torch.ones(3)

    holder = Holder()
    task = Task(lambda x: x + holder.value, (torch.zeros(3),))
    assert [tensor is Holder.value for tensor in task.program.inputs] == [False, True]
    prepared = variant("inductor-callable").prepare(task)
    Holder.value.mul_(3)
    assert prepared.run(torch.zeros(3)).result.tolist() == [3, 3, 3]


@pytest.mark.parametrize("name", ["cuda-graph/eager", "cuda-graph/inductor", "cudagraphs", "inductor/reduce-overhead"])
def test_what_needs_a_gpu_says_so(name: str) -> None:
    with pytest.raises(RefusalError, match="CUDA"):
        variant(name).prepare(Task(MODEL, (X,)))


def test_graph_breaks_are_refused_by_fullgraph_only() -> None:
    def function(x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return x + 1

    task = Task(function, (torch.ones(2),))
    assert variant("eager-backend").prepare(task).run(torch.ones(2)).result.tolist() == [2, 2]
    with pytest.raises(RefusalError, match="graph_break"):
        variant("eager-backend/fullgraph").prepare(task)


@pytest.mark.parametrize(
    ("name", "message"), [("indctor", "not a variant"), ("inductor/fastest", "'fastest' is none of default, reduce-overhead")]
)
def test_names_that_are_none(name: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        variant(name)


def test_defaults_begin_with_eager() -> None:
    names = [item.name for item in default_variants(Task(MODEL, (X,)))]
    assert names[0] == "eager" and "aot-inductor" in names and not any("cuda" in name for name in names)


def test_gradients_without_any_are_an_error() -> None:
    with pytest.raises(TargetError, match="no result depends"):
        Task(lambda x: x.detach(), (X,), gradients=True).run(lambda x: x.detach(), (X,), {})


def test_variants_may_be_one_text_with_commas() -> None:
    assert [item.name for item in named_variants("inductor, aot-inductor")] == ["inductor", "aot-inductor"]
    assert named_variants(variant("eager")) == (variant("eager"),)
    found = verify(torch.sin, torch.ones(3), variants="aot_eager", samples=0)
    assert [item.name for item in found.variants] == ["aot_eager"]
