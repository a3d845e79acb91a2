"""The tour on the command line: options that all lessons share, and `python -m compile_inspect.NAME` for one of them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption
from compile_inspect.errors import InspectError, TargetError
from compile_inspect.tour.contents import Chapter, everything

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

TargetOption = Annotated[
    str | None,
    typer.Option("--target", metavar="TARGET", help="Your own model instead of the tour's: file.py:name or module:name."),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Tell the theory beside the runs.")]
QuizOption = Annotated[bool, typer.Option("--quiz", help="Ask before each run what it will show.")]


def run_chapter(key: str) -> None:
    """What `python -m compile_inspect.NAME` does: one lesson, in a folder that is gone afterwards."""
    chapter = next(item for item in everything() if item.key == key)

    def command(
        target: TargetOption = None,
        inputs: InputsOption = None,
        explain: ExplainOption = False,
        quiz: QuizOption = False,
        no_color: NoColorOption = False,
    ) -> None:
        from compile_inspect.tour.running import teach

        found = own_target(target, inputs)
        with fresh_caches() as usual:
            guide = make_guide(explain=explain, quiz=quiz, no_color=no_color, folder=None, target=target, inputs=inputs)
            guide.usual_cache = usual
            lesson = teach(chapter, guide, found)
        if lesson.failed:
            sys.exit(1)

    command.__doc__ = f"{chapter.title}. {chapter.question}"
    run_application(command, f"python -m compile_inspect.{key}")


def run_application(command: object, name: str) -> None:
    """Run one function as a command line of its own; errors a user can act on are one sentence and exit status 2."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    application.command(context_settings={"help_option_names": ["-h", "--help"]})(command)  # type: ignore[type-var]
    try:
        application(prog_name=name)
    except InspectError as error:
        typer.echo(f"{name}: {error}", err=True)
        sys.exit(2)


def own_target(target: str | None, inputs: str | None) -> Target | None:
    """The user's target, where one was named; it is called once, for every lesson would fail at what it raises."""
    from compile_inspect.silence import silence
    from compile_inspect.target import find_target
    from compile_inspect.torch_private import dynamo_state

    if target is None:
        if inputs is not None:
            raise TargetError(f"--inputs {inputs} are the inputs of a target: name it too, with --target")
        return None
    found = find_target(target, inputs)
    if dynamo_state.is_compiled(found.function):
        raise TargetError(f"{target} is compiled already: name what it was made of, and the tour compiles that")
    try:
        with silence():
            found.function(*found.args, **found.kwargs)
    except Exception as error:
        raise TargetError(f"calling {target} raised {type(error).__name__}: {error}") from error
    return found


def make_guide(
    *, explain: bool, quiz: bool, no_color: bool, folder: Path | None, target: str | None = None, inputs: str | None = None
) -> Guide:
    """A guide for this terminal and this machine."""
    from compile_inspect.commands.show import make_console
    from compile_inspect.tour.guide import Guide
    from compile_inspect.tour.machine import this_machine
    from compile_inspect.tour.workshop import Workshop

    console = make_console(no_color)
    workshop = Workshop.temporary() if folder is None else Workshop(folder)
    machine = this_machine()
    console.print(f"{machine}\n")
    own = None if target is None else (target, inputs)
    return Guide(console, machine, workshop, explain=explain, quiz=quiz, own=own)


@contextmanager
def fresh_caches() -> Iterator[str]:
    """Torch's and Triton's caches on disk, empty and for this process alone: what is compiled is really compiled.

    Gives the folder that is used otherwise; empty where no variable names one.
    """
    names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="compile-inspect-caches-", ignore_cleanup_errors=True) as folder:
        os.environ.update(zip(names, (folder, str(Path(folder) / "triton")), strict=True))
        try:
            yield before[names[0]] or ""
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def chosen(keys: Sequence[str]) -> tuple[Chapter, ...]:
    """The lessons of some names, in the tour's order; all of them where none is named."""
    known = {item.key: item for item in everything()}
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise InspectError(f"there is no lesson {unknown[0]!r}: choose from {', '.join(known)}")
    return tuple(item for item in everything() if not keys or item.key in keys)
