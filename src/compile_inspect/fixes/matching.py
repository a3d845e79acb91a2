"""Breaks of a changed program against those of the original: which are gone, which stayed, which came, which were hidden."""

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
class Matching:
    """Breaks of a changed program that the change has to answer for."""

    remaining: tuple[GraphBreak, ...] = ()
    """Those that were to be removed and are still there."""
    arrived: tuple[GraphBreak, ...] = ()
    """Those that were not there before."""
    revealed: tuple[GraphBreak, ...] = ()
    """Those that tracing did not come to before: a break that was to be removed had ended it."""


def match_breaks(
    causes: Sequence[GraphBreak], proposal: Proposal, texts: Mapping[str, str], before: Inspection, after: Inspection
) -> Matching:
    """Look for every break of the changed program among those of the original.

    What is in the place of a cause, or on a line that was written anew, remains or has arrived with the change. What is
    known from before counts as often as it was there. Anything else has arrived, unless a cause had ended the tracing: then
    it may have been hidden behind that.
    """
    written = {name: _written(name, text) for name, text in texts.items()}
    places = {_key(cause, texts)[:2]: cause for cause in causes}
    # Another break on a line that is written anew is looked for on all lines that are.
    known = Counter(_key(item, texts) for item in before.breaks if item not in causes)
    # A setting may well move other breaks; then it counts whether there are fewer in all.
    lenient = not proposal.is_rewrite and len(after.breaks) < len(before.breaks)
    hiding = lenient or any(not goes_on(cause) for cause in causes)
    remaining: list[GraphBreak] = []
    arrived: list[GraphBreak] = []
    unknown: list[GraphBreak] = []
    for item in after.breaks:
        file, line, kind = key = _key(item)
        cause = places.get((file, line))
        if cause is not None and kind == cause.kind:
            remaining.append(item)
        elif line in written.get(file, ()):
            if any(file == _key(one)[0] and kind == one.kind for one in causes):
                remaining.append(item)
            elif known[file, None, kind] > 0:
                known[file, None, kind] -= 1
            else:
                arrived.append(item)
        elif known[key] > 0:
            known[key] -= 1
        elif cause is None:
            unknown.append(item)
        else:
            arrived.append(item)
    # A break inside a library is known by the line that calls it, which may be another one after the change.
    elsewhere: Counter[str] = Counter()
    for (_, _, kind), number in known.items():
        elsewhere[kind] += number
    new = [item for item in unknown if not _taken(elsewhere, item.kind)]
    revealed, arrived = (new, arrived) if hiding else ([], [*arrived, *new])
    return Matching(tuple(remaining), tuple(arrived), tuple(revealed))


def _taken(known: Counter[str], kind: str) -> bool:
    """Whether there is one left of a kind, which is then taken."""
    known[kind] -= 1
    return known[kind] >= 0


def goes_on(item: GraphBreak) -> bool:
    """Whether the rest of the function was compiled after a break; torch also splits and then skips all that follows."""
    return item.effect is BreakEffect.SPLIT and "skipping the rest of the function" not in item.text


def _key(item: GraphBreak, texts: Mapping[str, str] | None = None) -> Key:
    """What a break is known by: its file, its line (after a change of the texts), and its kind."""
    place = item.own_location or item.location
    if place is None:
        return "", 0, item.kind
    return place.file, place.line if texts is None else _mapped(place.file, texts, place.line), item.kind


def _written(file: str, text: str) -> set[int]:
    """The lines of a text that are not in the file as it is."""
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, text.split("\n"), autojunk=False)
    return {
        line + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag in ("replace", "insert")
        for line in range(start, end)
    }


def _mapped(file: str, texts: Mapping[str, str], line: int) -> int | None:
    """Where a line of a file is after the change; None where it is no more."""
    if file not in texts:
        return line
    source = read(file)
    old = source.text.split("\n") if source is not None else []
    matcher = difflib.SequenceMatcher(None, old, texts[file].split("\n"), autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a < line <= block.a + block.size:
            return line - block.a + block.b
    return None
