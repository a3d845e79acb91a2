"""What a command shows while it works: what it is doing and for how long, and nothing that the target prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Also show what the target, torch and its compilers print meanwhile.")
]
Report = Callable[[str, float], object]
# Drawing takes a millisecond, more than a round of short calls: four times a second is enough.
_REDRAW_SECONDS = 0.25


@contextmanager
def working(title: str, *, verbose: bool = False) -> Iterator[Callable[[str], object]]:
    """A line on standard error with what is being done and the seconds so far, where that is a terminal.

    What the target and torch print meanwhile is not shown, unless `verbose`: the answer would drown in it.
    """
    with _progress_console(verbose) as console:
        if not console.is_terminal:
            yield lambda _: None
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        # What is to be seen is printed above the line; what is not leads nowhere already.
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, redirect_stdout=verbose, redirect_stderr=verbose) as bar:
            task = bar.add_task(title, total=None)
            yield lambda told: bar.update(task, description=told)


@contextmanager
def measuring(title: str, *, verbose: bool = False) -> Iterator[Report | None]:
    """The same with a bar, and drawn between samples: a thread that draws would take time from them."""
    with _progress_console(verbose) as console:
        if not console.is_terminal:
            yield None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(
            *columns, console=console, transient=True, auto_refresh=False, redirect_stdout=verbose, redirect_stderr=verbose
        ) as bar:
            task = bar.add_task(title, total=1.0)
            drawn = 0.0

            def report(told: str, part: float) -> None:
                nonlocal drawn
                if monotonic() - drawn >= _REDRAW_SECONDS:
                    drawn = monotonic()
                    bar.update(task, completed=part, description=told, refresh=True)

            yield report


@contextmanager
def _progress_console(verbose: bool) -> Iterator[Console]:
    from rich.console import Console

    from compile_inspect.silence import divert_output

    with ExitStack() as stack:
        stream: TextIO | None = None if verbose else stack.enter_context(divert_output())
        yield Console(file=stream, stderr=True, markup=False)
