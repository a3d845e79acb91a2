from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lesson_state import quiet_guide, unchanged

from compile_inspect.target import Target
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.topics.call_outcomes import Call, CallOutcome
from compile_inspect.tour.topics.stances import STANCES, Stances, run_stances
from conftest import fresh_function

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)

C, R, E, X = CallOutcome.COMPILED, CallOutcome.REUSED, CallOutcome.EAGER, CallOutcome.RAISED
PREPARED = {
    "default": (R, C, R, R),
    "force_eager": (E, E, E, E),
    "fail_on_recompile": (R, X, X, X),
    "eager_on_recompile": (R, E, E, E),
    "eager_then_compile": (R, E, C, R),
}
NEW = {
    "default": (C, C, R, R),
    "force_eager": (E, E, E, E),
    "fail_on_recompile": (X, X, X, X),
    "eager_on_recompile": (E, E, E, E),
    "eager_then_compile": (E, C, R, R),
}


@pytest.fixture(scope="module")
def found() -> Stances:
    return run_stances(guide=quiet_guide())


def test_each_stance_does_what_it_says(found: Stances) -> None:
    for prepared, expected in ((True, PREPARED), (False, NEW)):
        assert {
            stance: tuple(call.outcome for call in found.run(stance, prepared=prepared).calls) for stance in STANCES
        } == expected


def test_a_second_run_sees_the_same(found: Stances, guide: Guide) -> None:
    """Torch remembers the first inputs under eager_then_compile through a reset; the chapter makes it forget."""
    again = run_stances(guide=guide)
    assert [[call.outcome for call in run.calls] for run in again.runs] == [
        [call.outcome for call in run.calls] for run in found.runs
    ]


def test_the_error_names_the_guard(found: Stances) -> None:
    assert "expected 4, actual 5" in found.run("fail_on_recompile").error
    assert any("expected 4, actual 5" in sentence for sentence in found.answer())


def test_the_answer_is_made_of_the_results(found: Stances) -> None:
    text = " ".join(found.answer())
    assert "default: 1 call compiled, 3 calls reused compiled code." in text
    assert "fail_on_recompile: 1 call reused compiled code, 3 calls raised an error." in text
    changed = replace(found.runs[0], calls=tuple(Call(4, CallOutcome.EAGER) for _ in range(4)))
    text = " ".join(replace(found, runs=(changed, *found.runs[1:])).answer())
    assert "default: 4 calls ran in eager mode." in text


def test_a_quiz_is_settled_by_the_run(guide: Guide) -> None:
    guide.quiz, guide.read_answer = True, lambda question: "c"
    run_stances(guide=guide)
    assert "Correct: c) ran in eager mode" in guide.console.file.getvalue()


def test_sizes_that_the_model_refuses_are_no_doing_of_a_stance(guide: Guide) -> None:
    choosy = fresh_function("assert x.shape[0] != 5, 'not five'; return x.sin()", torch=torch)
    found = run_stances(Target(choosy, (torch.ones(3, 2),)), guide=guide)
    assert [call.rows for call in found.runs[0].calls] == [4, 6]
    assert "rejects inputs with 5 rows even in eager mode: AssertionError: not five" in guide.notes[0]
    assert [call.outcome for call in found.run("force_eager").calls] == [E, E]
    assert "was first compiled for 4 rows, then called with 4, 6" in found.answer()[0]


def test_a_model_that_is_not_compiled_has_no_stances(guide: Guide) -> None:
    guide.quiz, guide.read_answer = True, lambda question: pytest.fail("asked what nothing will answer")
    plain = fresh_function("return x.tolist()", torch=torch)
    disabled = torch.compiler.disable(plain)
    found = run_stances(Target(disabled, (torch.ones(3, 2),)), guide=guide)
    assert found.answer() == () and "was compiled: the call ran in eager mode" in guide.notes[-1]


def test_without_rows_there_is_no_answer(guide: Guide) -> None:
    found = run_stances(Target(fresh_function("return x.sin()", torch=torch), (torch.tensor(1.0),)), guide=guide)
    assert found.answer() == () and "has rows" in guide.notes[-1]
