"""Progress of a command: its current task and the elapsed time, without the output of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Also show the output of the target, torch and its compilers.")]
ProgressReport = Callable[[str, float], object]
# Drawing takes a millisecond, longer than a round of short calls, so it is limited to four times a second.
_REDRAW_SECONDS = 0.25


@contextmanager
def working(title: str, *, verbose: bool = False) -> Iterator[Callable[[str], object]]:
    """Show the current task and the elapsed seconds in one line on standard error, if that is a terminal.

    The output of the target and torch is hidden unless `verbose`, so that the result stays visible.
    """
    with _progress_console(verbose) as console:
        if not console.is_terminal:
            yield lambda _: None
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        # Visible output is printed above the progress line; hidden output is already diverted.
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, redirect_stdout=verbose, redirect_stderr=verbose) as bar:
            task = bar.add_task(title, total=None)
            yield lambda description: bar.update(task, description=description)


@contextmanager
def measuring(title: str, *, verbose: bool = False) -> Iterator[ProgressReport | None]:
    """The same with a bar, drawn between samples: a drawing thread would take time from them."""
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
            last_drawn = 0.0

            def report(description: str, fraction: float) -> None:
                nonlocal last_drawn
                if monotonic() - last_drawn >= _REDRAW_SECONDS:
                    last_drawn = monotonic()
                    bar.update(task, completed=fraction, description=description, refresh=True)

            yield report


@contextmanager
def _progress_console(verbose: bool) -> Iterator[Console]:
    from rich.console import Console

    from compile_inspect.silence import divert_output

    with ExitStack() as stack:
        stream: TextIO | None = None if verbose else stack.enter_context(divert_output())
        yield Console(file=stream, stderr=True, markup=False)
