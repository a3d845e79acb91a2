"""`compile-inspect tour`: five phases and some chapters, run on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption
from compile_inspect.tour.command import (
    ExplainOption,
    QuizOption,
    TargetOption,
    chosen,
    fresh_caches,
    make_guide,
    own_target,
    run_application,
)

if TYPE_CHECKING:
    from compile_inspect.records.lessons import Lesson

FOLDER = Path("compile-inspect-tour")


def tour(
    lessons: Annotated[list[str] | None, typer.Argument(metavar="[LESSON]...", help="Only these; --list names them.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the lessons, and end.")] = False,
    target: TargetOption = None,
    inputs: InputsOption = None,
    explain: ExplainOption = False,
    quiz: QuizOption = False,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the models and the report are written.")
    ] = FOLDER,
    no_color: NoColorOption = False,
) -> None:
    """Show on this machine what each stage of torch.compile does, and when it pays: a few minutes, and a report at the end.

    Every lesson runs something, shows what was seen, and answers a question from the figures it has just measured.
    """
    chapters = chosen(lessons or [])
    if listed:
        for chapter in chapters:
            typer.echo(f"{chapter.key:18} {chapter.title}")
        return
    from compile_inspect.tour.ending import write_report
    from compile_inspect.tour.running import teach_all

    started = perf_counter()
    found = own_target(target, inputs)
    taught: list[Lesson] = []
    interrupted = False
    with fresh_caches() as usual:
        guide = make_guide(explain=explain, quiz=quiz, no_color=no_color, folder=folder, target=target, inputs=inputs)
        guide.usual_cache = usual
        try:
            for lesson in teach_all(chapters, guide, found):
                taught.append(lesson)
        except KeyboardInterrupt:  # what was taught until now is not lost
            interrupted = True
            guide.console.print("\nInterrupted.")
        write_report(taught, guide, perf_counter() - started - guide.waited)
    failed = [lesson.key for lesson in taught if lesson.failed]
    if failed:
        typer.echo(f"These lessons failed: {', '.join(failed)}.", err=True)
    if failed or interrupted:
        sys.exit(130 if interrupted else 1)


def main() -> None:
    """What `python -m compile_inspect.main` does."""
    run_application(tour, "python -m compile_inspect.main")
