"""`compile-inspect tour`: five phases and nine topics, run on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption
from compile_inspect.tour.catalog import select_lessons
from compile_inspect.tour.command_line import (
    ExplainOption,
    QuizOption,
    TargetOption,
    find_user_target,
    fresh_caches,
    make_guide,
    run_application,
)

if TYPE_CHECKING:
    from compile_inspect.records.lessons import Lesson

FOLDER = Path("compile-inspect-tour")


def tour(
    lessons: Annotated[
        list[str] | None, typer.Argument(metavar="[LESSON]...", help="The lessons to run, as named by --list. Default: all.")
    ] = None,
    list_lessons: Annotated[bool, typer.Option("--list", help="List the lessons and exit.")] = False,
    target: TargetOption = None,
    inputs: InputsOption = None,
    explain: ExplainOption = False,
    quiz: QuizOption = False,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where to write the models and the report.")
    ] = FOLDER,
    no_color: NoColorOption = False,
) -> None:
    """Show on this machine what each stage of torch.compile does and when it pays off. Takes a few minutes; ends with a report.

    Every lesson runs code, shows the results, and answers a question from what it has just measured.
    """
    plans = select_lessons(lessons or [])
    if list_lessons:
        for plan in plans:
            typer.echo(f"{plan.key:18} {plan.title}")
        return
    from compile_inspect.tour.report import write_report
    from compile_inspect.tour.runner import run_lessons

    start = perf_counter()
    user_target = find_user_target(target, inputs)
    completed: list[Lesson] = []
    interrupted = False
    with fresh_caches() as user_cache_folder:
        guide = make_guide(explain=explain, quiz=quiz, no_color=no_color, path=folder, target=target, inputs=inputs)
        guide.user_cache_folder = user_cache_folder
        try:
            for lesson in run_lessons(plans, guide, user_target):
                completed.append(lesson)
        except KeyboardInterrupt:  # the report still covers the lessons before it
            interrupted = True
            guide.console.print("\nInterrupted.")
        write_report(completed, guide, perf_counter() - start - guide.waiting_seconds)
    failed = [lesson.key for lesson in completed if lesson.failed]
    if failed:
        typer.echo(f"These lessons failed: {', '.join(failed)}.", err=True)
    if failed or interrupted:
        sys.exit(130 if interrupted else 1)


def main() -> None:
    """Implement `python -m compile_inspect.main`."""
    run_application(tour, "python -m compile_inspect.main")
