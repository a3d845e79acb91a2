"""Match the breaks of a changed program with those of the original: removed, remaining, new, or hidden before."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compile_inspect.fixes.source import read
from compile_inspect.records import BreakEffect, GraphBreak, Inspection
from compile_inspect.records.fixes import Proposal

Key = tuple[str, int | None, str]


@dataclass(frozen=True)
class BreakMatching:
    """Breaks of a changed program that count against the change."""

    remaining: tuple[GraphBreak, ...] = ()
    """Breaks that should have been removed and are still there."""
    new_breaks: tuple[GraphBreak, ...] = ()
    """Breaks that did not exist before."""
    revealed: tuple[GraphBreak, ...] = ()
    """Breaks that tracing did not reach before, because a break that should be removed ended it."""


def match_breaks(
    causes: Sequence[GraphBreak], proposal: Proposal, texts: Mapping[str, str], before: Inspection, after: Inspection
) -> BreakMatching:
    """Look up every break of the changed program among those of the original.

    A break at the location of a cause, or on a line that the change wrote, either remained or is new. Breaks
    of the original are expected as often as they occurred. Any other break is new too, unless a cause ended the tracing:
    then the break may have been hidden behind that cause.
    """
    changed_lines = {name: _changed_lines(name, text) for name, text in texts.items()}
    places = {_key(cause, texts)[:2]: cause for cause in causes}
    # Any other break on a rewritten line is matched with all rewritten lines.
    expected = Counter(_key(item, texts) for item in before.breaks if item not in causes)
    # A setting may move other breaks; then only the total number of breaks counts.
    lenient = not proposal.is_rewrite and len(after.breaks) < len(before.breaks)
    hiding = lenient or any(not continues_after(cause) for cause in causes)
    remaining: list[GraphBreak] = []
    new_breaks: list[GraphBreak] = []
    unknown: list[GraphBreak] = []
    for item in after.breaks:
        file, line, kind = key = _key(item)
        cause = places.get((file, line))
        if cause is not None and kind == cause.kind:
            remaining.append(item)
        elif line in changed_lines.get(file, ()):
            if any(file == _key(one)[0] and kind == one.kind for one in causes):
                remaining.append(item)
            elif expected[file, None, kind] > 0:
                expected[file, None, kind] -= 1
            else:
                new_breaks.append(item)
        elif expected[key] > 0:
            expected[key] -= 1
        elif cause is None:
            unknown.append(item)
        else:
            new_breaks.append(item)
    # A break inside a library is identified by the line that calls it, which may differ after the change.
    elsewhere: Counter[str] = Counter()
    for (_, _, kind), number in expected.items():
        elsewhere[kind] += number
    new = [item for item in unknown if not _consume(elsewhere, item.kind)]
    revealed, new_breaks = (new, new_breaks) if hiding else ([], [*new_breaks, *new])
    return BreakMatching(tuple(remaining), tuple(new_breaks), tuple(revealed))


def _consume(counts: Counter[str], kind: str) -> bool:
    """Consume one expected break of a kind; False if there is none left."""
    counts[kind] -= 1
    return counts[kind] >= 0


def continues_after(item: GraphBreak) -> bool:
    """Whether torch compiled the rest of the function after a break; it may also split and then skip the rest."""
    return item.effect is BreakEffect.SPLIT and "skipping the rest of the function" not in item.text


def _key(item: GraphBreak, texts: Mapping[str, str] | None = None) -> Key:
    """The identity of a break: its file, its line (in the changed texts), and its kind."""
    place = item.own_location or item.location
    if place is None:
        return "", 0, item.kind
    return place.file, place.line if texts is None else _line_after_change(place.file, texts, place.line), item.kind


def _changed_lines(file: str, text: str) -> set[int]:
    """The lines of a text that are not in the current file."""
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, text.split("\n"), autojunk=False)
    return {
        line + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag in ("replace", "insert")
        for line in range(start, end)
    }


def _line_after_change(file: str, texts: Mapping[str, str], line: int) -> int | None:
    """The number of a line after the change; None if the line no longer exists."""
    if file not in texts:
        return line
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, texts[file].split("\n"), autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a < line <= block.a + block.size:
            return line - block.a + block.b
    return None
