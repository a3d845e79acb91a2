"""`inspect`: one callable, compiled and recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import compile_inspect
from compile_inspect import Target, TargetError
from compile_inspect.records import BreakEffect, CompilationOutcome, CudaGraphOutcome, Stage
from conftest import fresh_function


def test_forward_and_backward_without_touching_gradients() -> None:
    model = torch.nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    inspection = compile_inspect.inspect(model, x, backend="aot_eager")
    assert inspection.graphs_at(Stage.BACKWARD)
    assert model.weight.grad is None and x.grad is None
    (compilation,) = inspection.compilations
    assert (compilation.function, compilation.backend) == ("Linear.forward", "aot_eager")


def test_options_reach_torch() -> None:
    inspection = compile_inspect.inspect(fresh_function("return x + 1"), torch.ones(3), backend="eager", dynamic=True)
    assert inspection.compilations[0].dynamic_symbols
    with pytest.raises(TargetError, match="rejected these options"):
        compile_inspect.inspect(fresh_function("return x"), torch.ones(3), mode="no-such-mode")


def test_fullgraph_failure_is_evidence() -> None:
    inspection = compile_inspect.inspect(
        fresh_function("print('x')\nreturn x + 1"), torch.ones(3), backend="eager", fullgraph=True
    )
    first, left = inspection.failures
    assert first.summary == left.summary == "Unsupported: Failed to trace builtin operator"
    assert (first.compilation, left.compilation) == (
        inspection.compilations[0].id,
        None,
    ) and inspection.uncaught_failure == left
    line = inspection.user_line(first.stack)
    assert line is not None and line.line == 2
    (cause,) = inspection.breaks
    assert (cause.identifier, cause.effect) == ("GB0059", BreakEffect.RAISED)
    assert cause.location is not None and cause.location.line == 2
    assert inspection.compilations[0].outcome is CompilationOutcome.FAILED


def test_a_failing_function_is_the_users_business(tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    with pytest.raises(TargetError, match="fails in eager mode: IndexError: index 7 is out of bounds"):
        compile_inspect.inspect(fresh_function("return x[y]", y=torch.tensor([7])), torch.ones(2), backend="eager", path=path)
    assert compile_inspect.load(path).complete


def test_compiled_before() -> None:
    program = fresh_function("return x + 1")
    assert compile_inspect.inspect(program, torch.ones(3), backend="eager").notes == ()
    again = compile_inspect.inspect(program, torch.ones(3), backend="eager")
    assert again.compilations == ()
    assert again.notes[0].startswith("Nothing was compiled.")


def test_a_compiled_function_keeps_its_own_options() -> None:
    compiled = torch.compile(fresh_function("return x + 1"), backend="eager")
    assert compile_inspect.inspect(compiled, torch.ones(3)).compilations[0].backend == "eager"


def test_target_with_further_inputs() -> None:
    program = fresh_function("return x + 1")
    target = Target(program, (torch.ones(3),), further=(((torch.ones(4),), {}),))
    inspection = compile_inspect.inspect(target, backend="eager")
    assert len(inspection.recompiles) == 1
    with pytest.raises(TargetError, match="has its own inputs"):
        compile_inspect.inspect(target, torch.ones(3))


def test_names_shared_with_the_function_are_refused() -> None:
    def program(x, mode="a"):
        return x + len(mode)

    with pytest.raises(TargetError, match="mode is both a parameter"):
        compile_inspect.inspect(program, torch.ones(2), mode="default")
    inspection = compile_inspect.inspect(Target(program, (torch.ones(2),), {"mode": "b"}), backend="eager")
    assert len(inspection.compilations) == 1


@pytest.mark.parametrize("wrong", [3, "text", None])
def test_not_a_callable(wrong: object) -> None:
    with pytest.raises(TargetError, match="needs a callable"):
        compile_inspect.inspect(wrong, torch.ones(2))  # type: ignore[arg-type]


def test_gradients_required_but_absent() -> None:
    with pytest.raises(TargetError, match="no output requires a gradient"):
        compile_inspect.inspect(Target(fresh_function("return x + 1"), (torch.ones(2),), gradients=True), backend="eager")


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without CUDA")
def test_reduce_overhead_on_a_cpu_is_said_to_do_nothing() -> None:
    inspection = compile_inspect.inspect(fresh_function("return x.sin() + 1"), torch.ones(64), mode="reduce-overhead")
    (event,) = inspection.cuda_graphs
    assert event.outcome is CudaGraphOutcome.NO_EFFECT
    assert "runs on cpu" in event.reason


def test_nested_outputs_and_dataclasses_have_their_backward() -> None:
    program = fresh_function("return {'a': [x.sin()], 'b': (x * 2,)}")
    inspection = compile_inspect.inspect(program, torch.ones(3, requires_grad=True), backend="aot_eager")
    assert len(inspection.graphs_at(Stage.BACKWARD)) == 1


def test_a_function_with_a_backward_of_its_own_gets_no_second_one() -> None:
    weight = torch.ones(3, requires_grad=True)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = (x * weight).square().sum()
        loss.backward()
        return loss

    inspection = compile_inspect.inspect(step, torch.ones(3), backend="eager")
    assert "The function runs its own backward pass, so none was run after it." in inspection.notes
    torch.testing.assert_close(weight.grad, 2 * torch.ones(3))
