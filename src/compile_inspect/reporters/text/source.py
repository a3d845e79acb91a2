"""Source code on the screen, highlighted if the terminal has colors."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Location
from compile_inspect.wording.plain import clean, one_line

_LINES_AROUND = 2


def print_code(console: Console, code: str, language: str = "python") -> None:
    """Print a listing without wrapping, so that it can be copied or piped."""
    console.print(highlight(console, clean(code).rstrip("\n"), language), soft_wrap=True)


def highlight(console: Console, code: str, language: str = "python") -> Text:
    """Highlight `code`, which must be clean already, if the terminal has colors."""
    if console.color_system is None or console.no_color:
        return Text(code)
    from rich.syntax import Syntax

    # The theme uses the terminal's own colors, so that it is readable on dark and light backgrounds.
    text = Syntax(code, language, theme="ansi_dark", background_color="default").highlight(code)
    text.rstrip()
    return text


def print_excerpt(console: Console, location: Location, sources: Mapping[str, str], indent: str = "    ") -> None:
    """Print the line of a location, marked, with its neighbors if the capture contains the file."""
    lines, first = _excerpt(location, sources)
    if not lines:
        return
    highlighted = highlight(console, "\n".join(lines)).split("\n", allow_blank=True)
    digits = len(str(first + len(lines) - 1))
    for offset, code in enumerate(highlighted):
        number = first + offset
        marked = number == location.line
        gutter = f"{'>' if marked else ' '} {number:>{digits}} │ "
        line = Text(indent).append(gutter, style="bold red" if marked else "dim").append_text(code)
        line.rstrip()
        console.print(line, soft_wrap=True)


def _excerpt(location: Location, sources: Mapping[str, str]) -> tuple[list[str], int]:
    # Split at newlines only: `splitlines` also splits at form feeds, unlike the line numbers of editors.
    lines = sources.get(location.file, "").split("\n")
    if not 1 <= location.line <= len(lines) or not lines[location.line - 1].strip():
        return ([one_line(location.code)] if location.code.strip() else []), location.line
    first = max(location.line - _LINES_AROUND, 1)
    last = min(location.line + _LINES_AROUND, len(lines))
    # Remove embedded line breaks from each line, so that the numbers stay correct.
    chosen = [clean(line).replace("\t", "    ").replace("\n", " ") for line in lines[first - 1 : last]]
    return textwrap.dedent("\n".join(chosen).rstrip()).split("\n"), first
