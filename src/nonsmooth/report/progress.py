"""Live progress of a run: a table on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from nonsmooth.loop.state import State
from nonsmooth.options import Options

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

ROWS = 10
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_FRAMES = 0.1

HEADINGS = ("iteration", "objective", "violation", "mu", "stationarity", "step", "evaluations", "fallback")
Row = tuple[str, ...]


class Progress:
    """A callback that shows every iteration and returns the result of the user's callback.

    Use it as a context manager around the run. On a terminal it draws the last iterations and a bar for each limit of the
    options. If stderr is not a terminal, it writes at most one line per second, and always the first and the last iteration.
    It writes nothing to stdout, and a terminal error never ends a run.
    """

    def __init__(
        self,
        options: Options,
        callback: Callable[[State], object] | None = None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._options, self._callback, self._stream, self._clock = options, callback, stream, clock
        self._rows: deque[Row] = deque(maxlen=ROWS)
        self._usage: dict[str, float] = {}
        self._live: Live | None = None
        self._last_drawn = -math.inf
        self._pending = False

    def __enter__(self) -> Progress:
        if self._stream is None:
            self._stream = sys.stderr
        try:
            self._live = _live(self._stream)
        except Exception:  # rich is missing, or does not support the terminal
            self._live = None
        return self

    def __exit__(self, *exception: object) -> None:
        self._draw(last=True)
        if self._live is not None:
            with suppress(Exception):
                self._live.stop()
        self._live = None

    def __call__(self, state: State) -> bool:
        """Show the state of a run; true if the user's callback ends the run."""
        self._rows.append(row(state))
        self._usage = {"iterations": state.iteration, "evaluations": state.evaluations, "seconds": state.seconds}
        self._pending = True
        self._draw()
        return bool(self._callback(state)) if self._callback is not None else False

    def _draw(self, *, last: bool = False) -> None:
        """Show pending iterations, unless the display was updated just now."""
        now = self._clock()
        pause = SECONDS_BETWEEN_LINES if self._live is None else SECONDS_BETWEEN_FRAMES
        if not self._pending or (now - self._last_drawn < pause and not last):
            return
        self._last_drawn, self._pending = now, False
        if self._live is not None:
            try:
                self._live.update(self._frame(), refresh=True)
                return
            except Exception:  # the terminal is gone, or cannot show this: continue with plain lines
                with suppress(Exception):
                    self._live.stop()
                self._live = None
        if self._stream is not None:
            with suppress(OSError, ValueError):  # the stream is closed, or its encoding lacks a character
                self._stream.write(line(self._rows[-1]) + "\n")
                self._stream.flush()

    def _frame(self) -> RenderableType:
        """The table of the last iterations and a bar for each limit."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for heading in HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for cells in self._rows:
            table.add_row(*cells)
        bars = Table.grid(padding=(0, 1))
        for name, limit in self._limits().items():
            used = min(self._usage[name], limit)
            bars.add_row(name, ProgressBar(total=limit, completed=used, width=40), f"{used:.0f} of {limit:g}")
        return Group(table, bars)

    def _limits(self) -> dict[str, float]:
        options = self._options
        limits = {
            "iterations": float(options.max_iterations),
            "evaluations": float(options.max_evaluations),
            "seconds": float(options.max_seconds),
        }
        return {name: limit for name, limit in limits.items() if 0 < limit < math.inf}


def _live(stream: Any) -> Live | None:
    """A running display, or None if the stream is not a terminal that rich can draw on."""
    if stream is None or not stream.isatty():
        return None
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    # Output of the callback appears above the table; stdout is redirected only if it is a terminal too.
    stdout_is_terminal = sys.stdout is not None and sys.stdout.isatty()
    live = Live(console=console, auto_refresh=False, redirect_stdout=stdout_is_terminal, redirect_stderr=stream is sys.stderr)
    live.start()
    return live


def row(state: State) -> Row:
    """The cells of a state, in the order of HEADINGS."""
    _, _, _, stationarity, step, _, _, fallback, _ = state.history[-1]
    return (
        str(state.iteration),
        f"{state.f:.8g}",
        f"{state.violation:.2e}",
        f"{state.penalty_parameter:.2g}",
        f"{stationarity:.2e}",
        f"{step:.1e}" if state.iteration else "-",
        str(state.evaluations),
        f"{fallback:.0f}" if fallback else "-",
    )


def line(cells: Row) -> str:
    """The row of one iteration as a line of text; a fallback is included only if there was one.

    >>> line(("3", "0.25", "0.00e+00", "1", "1.00e-03", "5.0e-01", "7", "-"))
    'iteration 3  objective 0.25  violation 0.00e+00  mu 1  stationarity 1.00e-03  step 5.0e-01  evaluations 7'
    """
    return "  ".join(f"{heading} {cell}" for heading, cell in zip(HEADINGS, cells, strict=True) if cell != "-")
