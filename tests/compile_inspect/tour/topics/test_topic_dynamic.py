from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lesson_state import quiet_guide, unchanged

from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.call_outcomes import Call, CallOutcome, CountingBackend, with_rows
from compile_inspect.tour.topics.dynamic import DynamicShapes, FailedGuard, run_dynamic_shapes
from conftest import fresh_function

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)


@pytest.fixture(scope="module")
def found() -> DynamicShapes:
    return run_dynamic_shapes(guide=quiet_guide())


def test_each_setting_compiles_when_it_should(found: DynamicShapes) -> None:
    compiled = {run.setting: run.compiled for run in found.runs}
    assert compiled == {
        "dynamic=None": (4, 5, 1),
        "dynamic=True": (4, 1),
        "dynamic=False": (4, 5, 6, 7, 1),
        "mark_dynamic(x, 0)": (4, 1),
    }


def test_the_guards_that_failed_are_those_of_the_calls(found: DynamicShapes) -> None:
    none = found.run("dynamic=None")
    assert [failure.rows for failure in none.failed_guards] == [5, 1]
    assert "expected 4, actual 5" in none.failed_guards[0].reason
    assert none.failed_guards[1].reason == "2 <= x.size()[0]"
    assert none.symbols == ("x.size()[0]",) and none.guards > 10
    assert found.run("dynamic=False").symbols == ()


def test_the_answer_is_made_of_the_results(found: DynamicShapes) -> None:
    text = " ".join(found.answer())
    assert "3 with dynamic=None, 2 with dynamic=True, 5 with dynamic=False, 2 with mark_dynamic(x, 0)" in text
    assert "2 <= x.size()[0]" in text
    first = replace(
        found.runs[0],
        calls=(Call(9, CallOutcome.COMPILED), Call(9, CallOutcome.REUSED)),
        failed_guards=(FailedGuard(9, "so"),),
        guards=77,
        compilations=1,
    )
    text = " ".join(replace(found, runs=(first, *found.runs[1:])).answer())
    assert (
        "9, 9 rows" in text
        and "1 with dynamic=None" in text
        and "77 guards" in text
        and "The call with 9 rows recompiled because this guard failed: so." in text
    )


def test_a_model_of_ones_own_is_taken(guide: Guide) -> None:
    found = run_dynamic_shapes(Target(fresh_function("return x.sin() + 1", torch=torch), (torch.ones(3, 2),)), guide=guide)
    assert found.model.startswith("program_")
    assert found.run("dynamic=None").compiled == (4, 5, 1)


@pytest.mark.slow
def test_a_model_that_pins_its_size_is_told(guide: Guide) -> None:
    pinned = fresh_function("return x.reshape(2, 2, -1) if x.shape[0] == 4 else x + int(x.shape[0] % 2)", torch=torch)
    found = run_dynamic_shapes(Target(pinned, (torch.ones(4, 2),)), guide=guide)
    raised = [call for call in found.run("mark_dynamic(x, 0)").calls if call.outcome is CallOutcome.RAISED]
    assert raised and any("raised" in sentence for sentence in found.answer())


def test_rows_are_repeated_and_cut() -> None:
    table, same, other = torch.arange(6).reshape(3, 2), torch.arange(3), torch.arange(2)
    first, second, third, number = with_rows((table, same, other, 5), 4)
    assert first.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]] and second.tolist() == [0, 1, 2, 0]
    assert third is other and number == 5
    assert with_rows((table,), 1)[0].tolist() == [[0, 1]]


def test_a_call_that_raises_is_told_by_its_message() -> None:
    def failing() -> None:
        raise ValueError(" not so ")

    def speechless() -> None:
        raise ValueError

    assert CountingBackend().observe(failing, 3) == Call(3, CallOutcome.RAISED, "not so")
    assert CountingBackend().observe(speechless, 3) == Call(3, CallOutcome.RAISED, "ValueError")
    assert CountingBackend().observe(lambda: None, 3) == Call(3, CallOutcome.EAGER)


def raising_at_one(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 1:
        raise ValueError
    return x.sin()


def test_sizes_that_the_model_refuses_are_left_out(guide: Guide) -> None:
    found = run_dynamic_shapes(Target(raising_at_one, (torch.ones(3, 2),)), guide=guide)
    assert [call.rows for call in found.runs[0].calls] == [4, 5, 6, 7]
    assert "rejects inputs with 1 row even in eager mode: ValueError" in guide.notes[0]
    assert not any("raised" in sentence for sentence in found.answer())


@pytest.mark.parametrize(
    ("source", "inputs", "told"),
    [
        (
            "return x.view(3, 2).sin()",
            (torch.ones(3, 2),),
            "rejects inputs with 4, 5, 6, 7, 1 rows even in eager mode: RuntimeError",
        ),
        ("return x.sin()", (torch.tensor(2.0),), "has rows"),
        ("return x.sin()", (torch.empty(0, 2),), "has rows"),
    ],
)
def test_where_nothing_varies_there_is_no_answer(source: str, inputs: tuple[torch.Tensor], told: str, guide: Guide) -> None:
    guide.quiz, guide.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    found = run_dynamic_shapes(Target(fresh_function(source, torch=torch), inputs), guide=guide)
    assert found.runs == () and found.answer() == ()
    assert told in guide.notes[-1]


@pytest.mark.slow
def test_every_piece_of_a_broken_graph_counts(guide: Guide) -> None:
    broken = fresh_function("x = x.sin(); print('hello'); return x.cos()", torch=torch)
    guide.quiz, guide.read_answer = True, lambda question: "3"
    found = run_dynamic_shapes(Target(broken, (torch.ones(3, 2),)), guide=guide)
    first = found.run("dynamic=None")
    assert (len(first.compiled), first.compilations) == (3, 6)
    text = " ".join(found.answer())
    assert "Compilations: 6 with dynamic=None" in text and "3 calls compiled 6 frames" in text
    assert "This guard failed 2 times: 2 <= " in text
    assert "Correct: d) 3." in guide.console.file.getvalue()


def test_what_was_never_compiled_has_no_guards(found: DynamicShapes) -> None:
    nothing = replace(
        found.runs[0], calls=(Call(4, CallOutcome.RAISED, "no\nmore"), Call(5, CallOutcome.RAISED, "no")), guards=0
    )
    text = " ".join(replace(found, runs=(nothing,)).answer())
    assert " guards" not in text and "the calls with 4, 5 rows raised an error: no." in text


@pytest.mark.slow
def test_inputs_and_state_are_the_readers(guide: Guide) -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            other += 1
            return x * self.calls

    module, other = Counting(), torch.zeros(7)
    run_dynamic_shapes(Target(module, (torch.ones(3, 2), other)), guide=guide)
    assert module.calls == 0 and other.sum() == 0
