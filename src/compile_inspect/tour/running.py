"""Going through lessons one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from compile_inspect.errors import InspectError
from compile_inspect.records.lessons import Lesson
from compile_inspect.tour.contents import Chapter
from compile_inspect.wording.quantities import seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide


def teach(chapter: Chapter, guide: Guide, target: Target | None = None, *, number: str = "") -> Lesson:
    """Run one lesson: question, evidence, answer. One that fails says so, and is no reason to end the tour."""
    from compile_inspect import torch_private
    from compile_inspect.torch_private.dynamo_state import silence_loggers

    guide.begin(f"{number}{chapter.title}", chapter.question, chapter.theory)
    started, waited = perf_counter(), guide.waited
    failed = False
    try:
        with silence_loggers(), torch_private.suppressed_compiler_output():
            answer = chapter.function()(target, guide=guide).answer()
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "").strip()
        told = first if isinstance(error, InspectError) else f"{type(error).__name__}: {first}"
        guide.note(f"this lesson failed: {told[:300]}")
        answer, failed = (), True
    took = perf_counter() - started - (guide.waited - waited)  # a reader who thinks is no part of it
    if not answer:
        answer = ("There is none: " + (guide.notes[-1] if guide.notes else "nothing was measured").rstrip(".") + ".",)
    lesson = Lesson(chapter.key, chapter.title, chapter.question, chapter.theory, answer=answer, seconds=took, failed=failed)
    return guide.conclude(lesson)


def teach_all(chapters: Sequence[Chapter], guide: Guide, target: Target | None = None) -> Iterator[Lesson]:
    """Run lessons one after the other, each with its number and the time so far; what one compiled is not the next one's."""
    from compile_inspect import torch_private

    started, waited = perf_counter(), guide.waited
    for index, chapter in enumerate(chapters, start=1):
        so_far = f", {seconds(perf_counter() - started - (guide.waited - waited))} so far" if index > 1 else ""
        yield teach(chapter, guide, target, number=f"[{index} of {len(chapters)}{so_far}] ")
        torch_private.forget_compiled_code()
