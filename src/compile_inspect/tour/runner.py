"""Run lessons one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from compile_inspect.errors import InspectError
from compile_inspect.records.lessons import Lesson
from compile_inspect.tour.catalog import LessonPlan
from compile_inspect.wording.quantities import seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_MAX_ERROR_CHARACTERS = 300


def run_lesson(plan: LessonPlan, guide: Guide, target: Target | None = None, *, position: str = "") -> Lesson:
    """Run one lesson: question, evidence, answer. A lesson that fails reports why and does not end the tour."""
    from compile_inspect import torch_private
    from compile_inspect.torch_private.dynamo_state import silence_loggers

    guide.begin(f"{position}{plan.title}", plan.question, plan.theory)
    start, waiting_before = perf_counter(), guide.waiting_seconds
    failed = False
    try:
        with silence_loggers(), torch_private.suppressed_compiler_output():
            answer = plan.load_function()(target, guide=guide).answer()
    except Exception as error:
        first_line = next((line for line in str(error).splitlines() if line.strip()), "").strip()
        message = first_line if isinstance(error, InspectError) else f"{type(error).__name__}: {first_line}"
        guide.note(f"this lesson failed: {message[:_MAX_ERROR_CHARACTERS]}")
        answer, failed = (), True
    # The time a reader takes to think does not count.
    duration = perf_counter() - start - (guide.waiting_seconds - waiting_before)
    if not answer:
        answer = ("No answer: " + (guide.notes[-1] if guide.notes else "nothing was measured").rstrip(".") + ".",)
    lesson = Lesson(plan.key, plan.title, plan.question, plan.theory, answer=answer, seconds=duration, failed=failed)
    return guide.conclude(lesson)


def run_lessons(plans: Sequence[LessonPlan], guide: Guide, target: Target | None = None) -> Iterator[Lesson]:
    """Run lessons in order, each with its number and the time so far; compiled code is dropped in between."""
    from compile_inspect import torch_private

    start, waiting_before = perf_counter(), guide.waiting_seconds
    for number, plan in enumerate(plans, start=1):
        elapsed = perf_counter() - start - (guide.waiting_seconds - waiting_before)
        so_far = f", {seconds(elapsed)} so far" if number > 1 else ""
        yield run_lesson(plan, guide, target, position=f"[{number} of {len(plans)}{so_far}] ")
        torch_private.forget_compiled_code()
