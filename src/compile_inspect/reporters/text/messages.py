"""Headings, sentences, warnings and folds: the building blocks of every section.

Every block that stands alone ends with an empty line, so that sections can follow one another.
"""

from __future__ import annotations

import re
import textwrap

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection, Missing
from compile_inspect.wording.plain import clean, one_line
from compile_inspect.wording.quantities import count

PARTIAL = "This capture is incomplete: the program was killed, or the file could not be fully written."
_READABLE_WIDTH = 100


def print_line(console: Console, line: Text) -> None:
    """Print one line; a terminal that is too narrow gets it wrapped between words, with a hanging indent.

    Elsewhere it stays one line, so that other programs can search and cut it.
    """
    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    indent = " " * (len(line.plain) - len(line.plain.lstrip(" ")) + 2)
    first, *rest = line.divide(_breaks(line.plain, console.width, len(indent)))
    for part in (first, *(Text(indent).append_text(part) for part in rest)):
        part.rstrip()
        console.print(part, soft_wrap=True)


def _breaks(text: str, width: int, indent: int) -> list[int]:
    """Positions at which to wrap between words; a word longer than a line is not broken.

    >>> _breaks("one two three", 9, 2), _breaks("one", 2, 0)
    ([8], [])
    """
    positions: list[int] = []
    start, room = 0, width
    for match in re.finditer(r"\S+", text):
        if match.end() - start > room and match.start() > start and text[start : match.start()].strip():
            positions.append(match.start())
            start, room = match.start(), max(width - indent, 20)
    return positions


def print_heading(console: Console, title: str, *details: str, indent: str = "") -> None:
    """Print a bold title with details after it."""
    line = Text(indent + one_line(title), style="bold")
    for detail in details:
        line.append(" · ", style="not bold dim").append(one_line(detail), style="not bold dim")
    print_line(console, line)


def print_paragraph(console: Console, sentences: str, *, indent: str = "", bullet: str = "", style: str = "") -> None:
    """Print sentences wrapped at a readable width; long words, such as links, are not broken."""
    width = max(min(console.width, _READABLE_WIDTH), len(indent) + len(bullet) + 20)
    first = indent + bullet
    for line in clean(sentences).expandtabs(4).split("\n"):
        if line.strip():
            wrapped = textwrap.fill(
                line.strip(),
                width,
                initial_indent=first,
                subsequent_indent=indent + " " * len(bullet),
                break_long_words=False,
                break_on_hyphens=False,
            )
            console.print(Text(wrapped, style=style), soft_wrap=True)
            first = indent + " " * len(bullet)


def print_warning(console: Console, sentence: str) -> None:
    """Print a warning."""
    print_line(console, Text("Warning: ", style="bold yellow").append(one_line(sentence), style="not bold"))


def print_folded(console: Console, hidden: int, noun: str, plural: str | None = None, indent: str = "  ") -> None:
    """Print how many entries are hidden, if any."""
    if hidden > 0:
        entries = count(hidden, f"more {noun}", None if plural is None else f"more {plural}")
        console.print(Text(f"{indent}… {entries} (use --all)", style="dim"), soft_wrap=True)


def print_empty(console: Console, inspection: Inspection, sentence: str, nothing_compiled: str = "") -> None:
    """Print that there is nothing to show, without claims beyond the evidence."""
    if not inspection.compilations:
        sentence = nothing_compiled or "Nothing was compiled during the recording, so there is nothing to show."
    print_paragraph(console, sentence)
    if inspection.missing:
        print_paragraph(console, "Some evidence could not be collected, so this may be incomplete:", style="dim")
        print_missing(console, inspection.missing)
    console.print()


def print_missing(console: Console, missing: tuple[Missing, ...]) -> None:
    """List the collectors that failed."""
    for item in missing:
        times = f" ({item.times:,} times)" if item.times > 1 else ""
        print_paragraph(console, f"{one_line(item.collector)}: {item.reason}{times}", indent="  ", bullet="- ")
