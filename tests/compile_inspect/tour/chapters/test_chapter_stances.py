from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from chapter_state import quiet_guide, unchanged

from compile_inspect.target import Target
from compile_inspect.tour.chapters.stances import STANCES, Stances, run_stances
from compile_inspect.tour.chapters.watching import Call, Happened
from compile_inspect.tour.guide import Guide
from conftest import fresh_function

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)

C, R, E, X = Happened.COMPILED, Happened.REUSED, Happened.EAGER, Happened.RAISED
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
            stance: tuple(call.happened for call in found.run(stance, prepared=prepared).calls) for stance in STANCES
        } == expected


def test_a_second_run_sees_the_same(found: Stances, guide: Guide) -> None:
    """Torch remembers the first inputs under eager_then_compile through a reset; the chapter makes it forget."""
    again = run_stances(guide=guide)
    assert [[call.happened for call in run.calls] for run in again.runs] == [
        [call.happened for call in run.calls] for run in found.runs
    ]


def test_the_error_names_the_guard(found: Stances) -> None:
    assert "expected 4, actual 5" in found.run("fail_on_recompile").error
    assert any("expected 4, actual 5" in sentence for sentence in found.answer())


def test_the_answer_is_made_of_the_results(found: Stances) -> None:
    text = " ".join(found.answer())
    assert "default: 1 call compiled, 3 calls ran what was compiled before." in text
    assert "fail_on_recompile: 1 call ran what was compiled before, 3 calls raised an error." in text
    changed = replace(found.runs[0], calls=tuple(Call(4, Happened.EAGER) for _ in range(4)))
    text = " ".join(replace(found, runs=(changed, *found.runs[1:])).answer())
    assert "default: 4 calls ran eagerly." in text


def test_a_quiz_is_settled_by_the_run(guide: Guide) -> None:
    guide.quiz, guide.ask = True, lambda question: "c"
    run_stances(guide=guide)
    assert "You guessed right: c) ran eagerly" in guide.console.file.getvalue()


def test_sizes_that_the_model_refuses_are_no_doing_of_a_stance(guide: Guide) -> None:
    choosy = fresh_function("assert x.shape[0] != 5, 'not five'; return x.sin()", torch=torch)
    found = run_stances(Target(choosy, (torch.ones(3, 2),)), guide=guide)
    assert [call.rows for call in found.runs[0].calls] == [4, 6]
    assert "refuses inputs with 5 rows: AssertionError: not five" in guide.notes[0]
    assert [call.happened for call in found.run("force_eager").calls] == [E, E]
    assert "had been compiled for 4 rows, and was then called with 4, 6" in found.answer()[0]


def test_a_model_that_is_not_compiled_has_no_stances(guide: Guide) -> None:
    guide.quiz, guide.ask = True, lambda question: pytest.fail("asked what nothing will answer")
    plain = fresh_function("return x.tolist()", torch=torch)
    disabled = torch.compiler.disable(plain)
    found = run_stances(Target(disabled, (torch.ones(3, 2),)), guide=guide)
    assert found.answer() == () and "was compiled: it ran eagerly" in guide.notes[-1]


def test_without_rows_there_is_no_answer(guide: Guide) -> None:
    found = run_stances(Target(fresh_function("return x.sin()", torch=torch), (torch.tensor(1.0),)), guide=guide)
    assert found.answer() == () and "has rows" in guide.notes[-1]
