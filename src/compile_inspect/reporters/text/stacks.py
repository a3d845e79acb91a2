"""Stacks, with the frames of libraries folded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Location, Stack
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.wording.locations import where
from compile_inspect.wording.plain import shorten
from compile_inspect.wording.quantities import count


def print_stack(console: Console, stack: Stack, *, whole: bool, indent: str = "    ") -> None:
    """Print a stack, outermost frame first; runs of library frames become one dim line unless `whole`."""
    # If no line is the user's own, show those of libraries built on torch.
    only_libraries = all(location.in_library for location in stack.locations)
    for is_library, run in groupby(stack.locations, lambda frame: frame.in_torch if only_libraries else frame.in_library):
        frames = list(run)
        if is_library and not whole:
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
