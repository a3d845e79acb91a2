"""Where in the source: short names for files, and stacks with the library frames folded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection, Kernel, Location, Stack
from compile_inspect.reporters.text.plain import one_line, plain, shorten
from compile_inspect.reporters.text.quantities import count

_PACKAGES = re.compile(r"^.*[/\\](?:site-packages|dist-packages)[/\\]")
_STANDARD_LIBRARY = re.compile(r"^.*[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?[/\\]")


def short_path(file: str) -> str:
    """A file relative to the current directory, or from its package on.

    >>> short_path("/venv/lib/python3.11/site-packages/torch/nn/functional.py")
    'torch/nn/functional.py'
    """
    try:
        directory = os.getcwd()
    except OSError:  # deleted under our feet
        directory = ""
    return _short_path(file, directory)


@lru_cache(maxsize=4096)
def _short_path(file: str, directory: str) -> str:
    # The package comes first: a virtual environment often lies in the current directory.
    for prefix in (_PACKAGES, _STANDARD_LIBRARY):
        match = prefix.match(file)
        if match:
            return one_line(file[match.end() :])
    inside = directory.rstrip("/\\") + os.sep
    if directory and file.startswith(inside):
        file = file[len(inside) :]
    return one_line(file)


def place(file: str, line: int) -> str:
    """File and line as editors and terminals understand them.

    >>> place("/venv/lib/python3.11/site-packages/torch/nn/functional.py", 7)
    'torch/nn/functional.py:7'
    """
    return f"{short_path(file)}:{line}" if file else "-"


def where(location: Location | None) -> str:
    """The place of a location, or a dash."""
    return "-" if location is None else place(location.file, location.line)


def stack_at(inspection: Inspection, index: int | None) -> Stack | None:
    """The stack with this number; None too where a damaged capture points nowhere."""
    if index is None or not 0 <= index < len(inspection.stacks):
        return None
    return inspection.stacks[index]


def user_line(inspection: Inspection, index: int | None) -> Location | None:
    """The innermost line outside torch of the stack with this number."""
    stack = stack_at(inspection, index)
    return None if stack is None else stack.user_line


def kernel_places(inspection: Inspection, kernel: Kernel) -> list[str]:
    """The distinct user lines a kernel computes."""
    lines = (user_line(inspection, index) for index in kernel.stacks)
    return list(dict.fromkeys(where(line) for line in lines if line is not None))


def print_stack(console: Console, stack: Stack, *, whole: bool, indent: str = "    ") -> None:
    """Print a stack outermost first; runs of library frames become one dim line unless `whole`."""
    for in_library, run in groupby(stack.locations, key=lambda location: location.in_library):
        frames = list(run)
        if in_library and not whole:
            console.print(Text(f"{indent}… {count(len(frames), 'library frame')}", style="dim"), soft_wrap=True)
        else:
            _print_frames(console, frames, indent)


def _print_frames(console: Console, frames: Sequence[Location], indent: str) -> None:
    for frame in frames:
        line = Text(indent).append(where(frame), style="dim" if frame.in_library else "cyan")
        if frame.function:
            line.append(" in ").append_text(plain(frame.function))
        if frame.code:
            line.append("  ").append(shorten(frame.code, 100), style="dim")
        console.print(line, soft_wrap=True)


def join_places(places: Iterable[str], most: int | None = None) -> str:
    """Several places on one line, all but `most` of them counted only.

    >>> join_places(["a.py:1", "a.py:2", "a.py:3"], most=2)
    'a.py:1, a.py:2, + 1'
    """
    everything = list(places)
    shown = everything if most is None else everything[:most]
    more = [f"+ {len(everything) - len(shown)}"] if len(shown) < len(everything) else []
    return ", ".join([*shown, *more]) or "-"
