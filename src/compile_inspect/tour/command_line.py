"""The tour on the command line: options that all lessons share, and `python -m compile_inspect.NAME` for one lesson."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compile_inspect.command_options import InputsOption, NoColorOption
from compile_inspect.errors import InspectError, TargetError
from compile_inspect.tour.catalog import lesson_plans

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

TargetOption = Annotated[
    str | None,
    typer.Option("--target", metavar="TARGET", help="Your own model instead of the tour's: file.py:name or module:name."),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Print the theory behind each lesson.")]
QuizOption = Annotated[bool, typer.Option("--quiz", help="Ask you to predict each result before the lesson runs.")]


def run_lesson_command(key: str) -> None:
    """Implement `python -m compile_inspect.NAME`: run one lesson in a temporary folder."""
    plan = next(item for item in lesson_plans() if item.key == key)

    def command(
        target: TargetOption = None,
        inputs: InputsOption = None,
        explain: ExplainOption = False,
        quiz: QuizOption = False,
        no_color: NoColorOption = False,
    ) -> None:
        from compile_inspect.tour.runner import run_lesson

        user_target = find_user_target(target, inputs)
        with fresh_caches() as user_cache_folder:
            guide = make_guide(explain=explain, quiz=quiz, no_color=no_color, path=None, target=target, inputs=inputs)
            guide.user_cache_folder = user_cache_folder
            lesson = run_lesson(plan, guide, user_target)
        if lesson.failed:
            sys.exit(1)

    command.__doc__ = f"{plan.title}. {plan.question}"
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


def find_user_target(specification: str | None, inputs: str | None) -> Target | None:
    """The user's target, if there is one. It is called once here, because an exception in it would fail every lesson."""
    from compile_inspect.silence import silence
    from compile_inspect.target import find_target
    from compile_inspect.torch_private import dynamo_state

    if specification is None:
        if inputs is not None:
            raise TargetError(f"--inputs {inputs} needs a target: name it with --target")
        return None
    target = find_target(specification, inputs)
    if dynamo_state.is_compiled(target.function):
        raise TargetError(f"{specification} is already compiled: name the original model, and the tour compiles it")
    try:
        with silence():
            target.function(*target.args, **target.kwargs)
    except Exception as error:
        raise TargetError(f"calling {specification} raised {type(error).__name__}: {error}") from error
    return target


def make_guide(
    *, explain: bool, quiz: bool, no_color: bool, path: Path | None, target: str | None = None, inputs: str | None = None
) -> Guide:
    """A guide for this terminal and this machine; its folder is temporary where `path` is None."""
    from compile_inspect.commands.show import make_console
    from compile_inspect.tour.folder import TourFolder
    from compile_inspect.tour.guide import Guide
    from compile_inspect.tour.machine import this_machine

    console = make_console(no_color)
    folder = TourFolder.temporary() if path is None else TourFolder(path)
    machine = this_machine()
    console.print(f"{machine}\n")
    user_target = None if target is None else (target, inputs)
    return Guide(console, machine, folder, explain=explain, quiz=quiz, user_target=user_target)


@contextmanager
def fresh_caches() -> Iterator[str]:
    """Give this process empty on-disk caches of torch and Triton, so that compilations are real.

    Yields the user's own cache folder; empty where no variable names one.
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
