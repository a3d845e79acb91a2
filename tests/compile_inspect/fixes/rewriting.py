"""A program with a break on the line marked so, and what a fixer makes of it; nothing is compiled."""

from __future__ import annotations

from compile_inspect.fixes.base import BreakSite, Fixer
from compile_inspect.fixes.source import apply
from compile_inspect.records import BreakEffect, GraphBreak, Location


def place_of(text: str, kind: str) -> BreakSite:
    """The place of a break on the line that holds `BREAK`."""
    line = next(number for number, content in enumerate(text.split("\n"), 1) if "BREAK" in content)
    here = Location("a_file_that_is_not_there.py", line)
    return BreakSite.of(GraphBreak(kind, here, here, BreakEffect.SPLIT), {here.file: text})


def rewritten(fixer: Fixer, text: str, kind: str) -> dict[str, str]:
    """The program after each proposal of a fixer that changes lines, by title."""
    place = place_of(text, kind)
    assert fixer.matches(place)
    assert fixer.why(place)
    return {item.title: apply(text, item.replacements) for item in fixer.proposals(place) if item.is_rewrite}
