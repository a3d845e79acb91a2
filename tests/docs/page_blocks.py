"""The blocks of the pages: which there are, what each is for, and the output promised for it.

A fence names its language. What is done with a block goes by that, and by what stands directly before it:

- `python` blocks of a page are one session, in the order of the page; `<!-- stands alone -->` starts another one for a block.
- A `text` block directly after it is what it prints.
- A block whose paragraph before ends with the name of a file and a colon ("Take `script.py`:") is written to that file.
- Every `$ command` of a `console` block is run; the lines below it are what it prints. A command that is followed by
  `$ echo $?` ends with the status printed there, every other one with 0.
- `yaml` blocks are read.
- `<!-- not run: why -->` leaves a block out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("console", "python", "sh", "text", "yaml")
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=ticks)$", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!-- (.*?) -->\s*\Z", re.DOTALL)
FILE_NAME = re.compile(r"`([\w./-]+)(\.\w+)`[^`\n]*:\s*\Z")
SUFFIXES = {"python": (".py",), "sh": (".sh",), "yaml": (".yaml", ".yml")}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int  # of the first line within the fence
    language: str
    text: str
    file: str | None  # to which it is written
    not_run: str | None  # why it is left out
    alone: bool
    promised: str | None  # the text block directly after it
    is_output: bool  # of the block before

    @property
    def place(self) -> str:
        """Where it is, for a message."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a console block."""

    line: int
    text: str
    shown: str | None
    status: int


def pages() -> list[str]:
    """Every page, by its path from the root."""
    return ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Every fenced block of a page, in its order."""
    if text is None:
        text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Block] = []
    matches = list(FENCE.finditer(text))
    for index, match in enumerate(matches):
        before = text[matches[index - 1].end() if index else 0 : match.start()].rstrip()
        comment = COMMENT.search(before)
        said = comment[1] if comment else ""
        paragraph = (before[: comment.start()] if comment else before).rstrip()
        named = FILE_NAME.search(paragraph.rpartition("\n\n")[2])
        following = matches[index + 1] if index + 1 < len(matches) else None
        adjoins = following is not None and not text[match.end() : following.start()].strip()
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, match.start()) + 2,
                language=match["language"],
                text=match["text"],
                file=named[1] + named[2] if named and named[2] in SUFFIXES.get(match["language"], ()) else None,
                not_run=said.removeprefix("not run: ") if said.startswith("not run: ") else None,
                alone=said == "stands alone",
                promised=following["text"] if following and adjoins and following["language"] == "text" else None,
                is_output=match["language"] == "text"
                and index > 0
                and not before
                and matches[index - 1]["language"] == "python",
            )
        )
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block, `echo $?` taken together with the one before it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.place} shows output before the first command; commands begin with '$ '"
    found: list[tuple[int, str, str]] = []
    line = block.line + parts[0].count("\n")
    for part in parts[1:]:
        typed, _, shown = part.partition("\n")
        while typed.endswith("\\"):
            more, _, shown = shown.partition("\n")
            typed = f"{typed[:-1]}{more.removeprefix('> ')}"
        found.append((line, typed.strip(), shown))
        line += part.count("\n")
    for index, (line, typed, shown) in enumerate(found):
        if typed == "echo $?":
            assert index, f"{block.place} asks for the status of no command"
            continue
        asked = index + 1 < len(found) and found[index + 1][1] == "echo $?"
        yield Command(line, typed, shown if shown.strip() else None, int(found[index + 1][2]) if asked else 0)
