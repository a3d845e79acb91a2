"""A graph break at a line of a text that ends with `# here`, and the texts that proposals make of it."""

from __future__ import annotations

from compile_inspect.fixes.base import BreakSite, Fixer
from compile_inspect.fixes.source import apply
from compile_inspect.records import BreakEffect, GraphBreak, Location

FILE = "/nowhere/model.py"
NONZERO = ("Dynamic shape operator", "aten.nonzero.default")
SCALAR = ("Data dependent operator", "aten._local_scalar_dense.default")
SKIPPED = ("Attempted to call function marked as skipped", "module: time, qualname: time")


def place(code: str, kind: str, context: str = "", explanation: str = "") -> BreakSite:
    """The place of a break at the marked line."""
    line = next(number for number, text in enumerate(code.split("\n"), 1) if "# here" in text)
    location = Location(FILE, line)
    cause = GraphBreak(kind, location, location, BreakEffect.SPLIT, context=context, explanation=explanation)
    return BreakSite.of(cause, {FILE: code})


def rewrites(fixer: Fixer, code: str, kind: str, context: str = "", explanation: str = "") -> dict[str, str]:
    """The text after each proposal that changes lines, by title."""
    found = place(code, kind, context, explanation)
    assert fixer.matches(found)
    assert fixer.why(found)
    proposals = fixer.proposals(found)
    assert proposals or fixer.hints(found)
    return {item.title: apply(code, item.replacements) for item in proposals if item.is_rewrite}
