"""The chapters as the tour lists them."""

from __future__ import annotations

import inspect

import pytest
from chapter_state import guide_without_compiler, quiet_guide, unchanged

from compile_inspect.tour.contents import CHAPTERS, PHASES, Chapter
from compile_inspect.tour.guide import Guide
from compile_inspect.tour.running import teach

unchanged = pytest.fixture(autouse=True)(unchanged)
guide = pytest.fixture(quiet_guide)
without_compiler = pytest.fixture(guide_without_compiler)


def test_keys_differ() -> None:
    keys = [chapter.key for chapter in PHASES + CHAPTERS]
    assert len(CHAPTERS) == 9 and len(set(keys)) == len(keys)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.key)
def test_every_chapter_has_a_function_a_question_and_a_theory(chapter: Chapter) -> None:
    parameters = inspect.signature(chapter.function()).parameters
    assert list(parameters) == ["target", "guide"]
    assert parameters["guide"].kind is inspect.Parameter.KEYWORD_ONLY
    assert all(parameter.default is None for parameter in parameters.values())
    assert chapter.question.endswith("?")
    assert 2 <= len(chapter.theory) <= 3
    assert all(100 < len(paragraph) < 700 for paragraph in chapter.theory)


def test_a_chapter_is_taught_with_evidence_and_an_answer(guide: Guide) -> None:
    lesson = teach(next(chapter for chapter in CHAPTERS if chapter.key == "backend"), guide)
    assert lesson.evidence and lesson.answer and not lesson.notes
    assert lesson.seconds > 0


@pytest.mark.parametrize("key", ["modes", "caches"])
def test_what_cannot_run_here_says_why(key: str, without_compiler: Guide) -> None:
    lesson = teach(next(chapter for chapter in CHAPTERS if chapter.key == key), without_compiler)
    assert lesson.notes[0] == without_compiler.machine.lacking
    assert lesson.answer[0].startswith("There is none")
