"""What a fixer makes of a text, without a compiler."""

from __future__ import annotations

from compile_inspect.fixes.base import BreakSite, Fixer
from compile_inspect.fixes.source import SourceFile, apply
from compile_inspect.records import GraphBreak, Location
from compile_inspect.records.breaks import BreakEffect


def place_in(text: str, kind: str, context: str = "") -> BreakSite:
    """The place of a break of a kind at the line that has `# here` in it."""
    line = next(number for number, content in enumerate(text.split("\n"), 1) if "# here" in content)
    location = Location("model.py", line, "f", "")
    cause = GraphBreak(kind, location, location, BreakEffect.SPLIT, context=context)
    return BreakSite(cause, location, SourceFile("model.py", text))


def changed(fixer: Fixer, text: str, kind: str, context: str = "") -> dict[str, str]:
    """The text after each rewrite that a fixer proposes, by title."""
    place = place_in(text, kind, context)
    assert fixer.matches(place)
    assert fixer.why(place)
    return {item.title: apply(text, item.replacements) for item in fixer.proposals(place) if item.replacements}
