from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from lesson_state import guide_with_compiler, guide_without_compiler, unchanged

from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.autograd import AutogradGraphs, SavedTensor, run_autograd_graphs
from conftest import fresh_function

unchanged = pytest.fixture(autouse=True)(unchanged)
with_compiler = pytest.fixture(guide_with_compiler)
without_compiler = pytest.fixture(guide_without_compiler)


def test_graphs_are_shown_without_a_compiler(without_compiler: Guide) -> None:
    found = run_autograd_graphs(guide=without_compiler)
    assert found.backend == "aot_eager" and found.kernels == ()
    assert "without kernels" in without_compiler.notes[0]
    assert (found.captured, found.forward) == (5, 6) and found.backward > found.forward
    assert found.saved[0] == SavedTensor("mm", "float32[8, 16]") and len(found.saved) == 2
    assert found.recomputed == ("gelu", "cos")  # cheap, from a product that is saved anyway
    assert found.gradient_difference < 1e-5
    assert any("torch.ops.aten.gelu_backward" in getattr(item, "text", "") for item in without_compiler.evidence)


def test_what_saves_nothing_and_what_saves_its_result(without_compiler: Guide) -> None:
    linear = Target(fresh_function("return x * 3", torch=torch), (torch.ones(3, requires_grad=True),))
    found = run_autograd_graphs(linear, guide=without_compiler)
    assert (found.saved, found.recomputed, found.backward) == ((), (), 1)
    text = " ".join(found.answer())
    assert "recomputes nothing of the forward" in text and "saves nothing for the backward." in text
    assert found.correct_choice == 2


def test_gradients_are_not_left_behind(without_compiler: Guide) -> None:
    with torch.random.fork_rng():
        module = torch.nn.Linear(3, 2)
    run_autograd_graphs(Target(module, (torch.ones(1, 3),)), guide=without_compiler)
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_model_without_gradients_is_told(without_compiler: Guide) -> None:
    found = run_autograd_graphs(Target(fresh_function("return x + 1", torch=torch), (torch.ones(3),)), guide=without_compiler)
    assert found.answer() == () and "requires a gradient" in without_compiler.notes[-1]


def test_the_answer_is_made_of_the_results() -> None:
    found = AutogradGraphs(
        "f", "inductor", 3, 4, 9, (SavedTensor("a", "float32[2]"),), ("b", "c"), (("forward", "k", 2),), 0.125
    )
    text = " ".join(found.answer())
    assert "captured 3 operations of f. AOTAutograd turned them into a forward of 4 and a backward of 9" in text
    assert "saves 1 tensor for the backward: a (float32[2])" in text
    assert "recomputes 2 operations of the forward: b, c." in text and "checkpoint" not in text
    assert "b, c; the model requests this with checkpoint." in " ".join(replace(found, checkpointed=True).answer())
    assert "1 in the forward and 0 in the backward" in text and "by more than 0.1" in text
    assert "a forward of 40" in " ".join(replace(found, forward=40).answer())


@pytest.mark.exhaustive
def test_kernels_of_both_directions_are_named(with_compiler: Guide) -> None:
    found = run_autograd_graphs(guide=with_compiler)
    assert found.backend == "inductor" and with_compiler.notes == []
    nodes = {
        direction: [number for way, _, number in found.kernels if way == direction] for direction in ("forward", "backward")
    }
    assert max(nodes["forward"]) > 1 and max(nodes["backward"]) > 1  # something was fused, both ways
    assert {"erf", "cos"} <= set(found.recomputed)


@dataclass
class Held:
    value: torch.Tensor


def held(x: torch.Tensor) -> Held:
    return Held(x.sin())


def checkpointed(x: torch.Tensor) -> torch.Tensor:
    from torch.utils.checkpoint import checkpoint

    return checkpoint(lambda given: given.sin().exp(), x, use_reentrant=False).sum()


def test_gradients_inside_objects_are_found(without_compiler: Guide) -> None:
    found = run_autograd_graphs(Target(held, (torch.ones(3, requires_grad=True),)), guide=without_compiler)
    assert found.backward > 0 and found.gradient_difference == 0
    assert not any("requires a gradient" in note for note in without_compiler.notes)


def test_a_backward_without_operations_is_a_backward(without_compiler: Guide) -> None:
    linear = Target(fresh_function("return x + 1", torch=torch), (torch.ones(3, requires_grad=True),))
    found = run_autograd_graphs(linear, guide=without_compiler)
    assert found.has_backward and found.backward == 0
    assert "a forward of 1 and a backward of 0" in found.answer()[0]


def test_random_gradients_are_not_compared(without_compiler: Guide) -> None:
    random = Target(fresh_function("return torch.dropout(x, 0.5, True)", torch=torch), (torch.ones(64, requires_grad=True),))
    found = run_autograd_graphs(random, guide=without_compiler)
    assert found.gradient_difference is None and "draws random numbers" in found.answer()[-1]


def test_checkpoint_is_seen(without_compiler: Guide) -> None:
    found = run_autograd_graphs(Target(checkpointed, (torch.ones(3, requires_grad=True),)), guide=without_compiler)
    assert found.checkpointed and "sin" in found.recomputed


def test_the_verdict_weighs_what_is_saved_against_what_is_computed() -> None:
    found = AutogradGraphs("f", "inductor", 3, 2, 9, (SavedTensor("a", ""), SavedTensor("b", "")), ("c",))
    assert replace(found, saved_results=2).correct_choice == 0
    assert replace(found, saved_results=1).correct_choice == 1
    assert replace(found, saved=()).correct_choice == 2


def test_no_question_where_there_is_no_gradient(without_compiler: Guide) -> None:
    without_compiler.quiz, without_compiler.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    target = Target(fresh_function("return x + 1", torch=torch), (torch.ones(3),))
    assert run_autograd_graphs(target, guide=without_compiler).answer() == ()
    assert "requires a gradient" in without_compiler.notes[-1]
