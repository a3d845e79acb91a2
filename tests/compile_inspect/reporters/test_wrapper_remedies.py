"""Wrappers of torch's own that were compiled: the remedy by name, and only where it helps."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch._dynamo

import compile_inspect
from compile_inspect.advice.wrappers import wrapper_remedies
from compile_inspect.records import BreakEffect, Compilation, CompilationOutcome, GraphBreak, Inspection, Location, Stack

TORCH = "/venv/lib/python3.11/site-packages/torch"
WRAPPERS = [f"{TORCH}/nn/parallel/distributed.py", f"{TORCH}/distributed/fsdp/_fully_shard/_fsdp_state.py"]


def wrapped(file: str) -> Inspection:
    script, inside = Location("/home/me/train.py", 9), Location(file, 1757, "_pre_forward")
    cause = GraphBreak("Unsupported method call", inside, None, BreakEffect.SPLIT, stack=0, compilations=("0/0",))
    frame = Compilation("0/0", "forward", file, 1700, CompilationOutcome.COMPILED, call_stack=0)
    return Inspection(compilations=(frame,), breaks=(cause,), stacks=(Stack((script, inside)),))


@pytest.mark.parametrize("file", WRAPPERS)
def test_a_compiled_wrapper(file: str) -> None:
    (sentence,) = wrapper_remedies(wrapped(file))
    assert "torch cannot trace" in sentence
    assert "nothing inside it runs compiled" in sentence
    assert ", then" in sentence


@pytest.mark.parametrize("file", WRAPPERS)
def test_what_else_was_compiled_is_not_denied(file: str) -> None:
    inspection = wrapped(file)
    other = Compilation("1/0", "loss", "/home/me/train.py", 3, CompilationOutcome.COMPILED, graph_calls=4)
    (sentence,) = wrapper_remedies(dataclasses.replace(inspection, compilations=(*inspection.compilations, other)))
    assert "nothing" not in sentence


@pytest.mark.parametrize("file", WRAPPERS)
def test_nothing_is_said_where_the_model_inside_was_compiled(file: str) -> None:
    inspection = wrapped(file)
    inner = Compilation("1/0", "forward", "/home/me/model.py", 3, CompilationOutcome.COMPILED, call_stack=0, graph_calls=4)
    assert not [*wrapper_remedies(dataclasses.replace(inspection, compilations=(*inspection.compilations, inner)))]


@pytest.mark.parametrize("file", WRAPPERS)
def test_nothing_is_said_where_the_wrapper_is_outside(file: str) -> None:
    stack = Stack((Location("/home/me/train.py", 9), Location(file, 1757), Location("/home/me/model.py", 5)))
    cause = GraphBreak("print", Location("/home/me/model.py", 5), Location("/home/me/model.py", 5), BreakEffect.SPLIT, stack=0)
    frame = Compilation("0/0", "forward", "/home/me/model.py", 3, CompilationOutcome.COMPILED, call_stack=0)
    assert not [*wrapper_remedies(Inspection(compilations=(frame,), breaks=(cause,), stacks=(stack,)))]


def trained(whole: bool, scheduled: bool = False) -> Inspection:
    torch._dynamo.reset()
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(net.parameters())
    if scheduled:
        torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(x: torch.Tensor) -> None:
        net(x).sum().backward()
        optimizer.step()

    update = torch.compile(optimizer.step, backend="eager")
    with compile_inspect.record() as recording:
        if whole:
            torch.compile(step, backend="eager")(torch.ones(2, 4))
        else:
            net(torch.ones(2, 4)).sum().backward()
            update()
    return recording.inspection


def test_a_train_step_compiled_whole() -> None:
    (sentence,) = wrapper_remedies(trained(whole=True))
    assert "`optimizer.step()` inside compiled code" in sentence
    assert "torch.compile(optimizer.step)" in sentence


def test_an_optimizer_step_compiled_by_itself_needs_nothing() -> None:
    inspection = trained(whole=False)
    (sentence,) = wrapper_remedies(inspection)
    assert "nothing to do" in sentence
    assert not inspection.nothing_compiled
    assert len(inspection.breaks) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_learning_rate_schedule_changes_no_answer(whole: bool) -> None:
    """A scheduler puts a function of its own around `optimizer.step`, which torch does not trace either."""
    (sentence,) = wrapper_remedies(trained(whole=whole, scheduled=True))
    assert ("inside compiled code" in sentence) is whole
    assert ("nothing to do" in sentence) is not whole
