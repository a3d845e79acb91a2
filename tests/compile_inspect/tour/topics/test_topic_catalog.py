"""The plans as the tour lists them."""

from __future__ import annotations

import inspect

import pytest
from lesson_state import guide_without_compiler, quiet_guide, unchanged

from compile_inspect.tour.catalog import PHASES, TOPICS, LessonPlan
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.runner import run_lesson

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)
without_compiler = pytest.fixture(guide_without_compiler)


def test_keys_differ() -> None:
    keys = [plan.key for plan in PHASES + TOPICS]
    assert len(TOPICS) == 9 and len(set(keys)) == len(keys)


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.key)
def test_every_chapter_has_a_function_a_question_and_a_theory(plan: LessonPlan) -> None:
    parameters = inspect.signature(plan.load_function()).parameters
    assert list(parameters) == ["target", "guide"]
    assert parameters["guide"].kind is inspect.Parameter.KEYWORD_ONLY
    assert all(parameter.default is None for parameter in parameters.values())
    assert plan.question.endswith("?")
    assert 2 <= len(plan.theory) <= 3
    assert all(100 < len(paragraph) < 700 for paragraph in plan.theory)


def test_a_chapter_is_taught_with_evidence_and_an_answer(guide: Guide) -> None:
    lesson = run_lesson(next(plan for plan in TOPICS if plan.key == "backend"), guide)
    assert lesson.evidence and lesson.answer and not lesson.notes
    assert lesson.seconds > 0


@pytest.mark.parametrize("key", ["modes", "caches"])
def test_what_cannot_run_here_says_why(key: str, without_compiler: Guide) -> None:
    lesson = run_lesson(next(plan for plan in TOPICS if plan.key == key), without_compiler)
    assert lesson.notes[0] == without_compiler.machine.missing_requirement
    assert lesson.answer[0].startswith("No answer")
