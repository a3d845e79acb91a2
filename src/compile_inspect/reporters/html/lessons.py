"""The lessons of a tour as the data of a page: what was asked, what was seen, what follows from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compile_inspect.records.lessons import Lesson, Listing, Remark, Table
from compile_inspect.reporters.html.highlighting import Line, highlighted
from compile_inspect.reporters.html.measurements import number
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.wording.quantities import count, seconds

Data = dict[str, Any]

MOST_LINES = 5_000
"""Lines of one listing: the module that Inductor writes for a large model has a hundred thousand, and is no evidence."""

_HIGHLIGHTED = ("python", "cpp")
_NOT_IN_AN_ADDRESS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Tour:
    """Lessons, and what a page says of all of them.

    `sentence` is the first thing to be read; without one it is made of the lessons. `origin` names the machine.
    """

    lessons: Sequence[Lesson]
    sentence: str = ""
    origin: str = ""

    def told(self) -> str:
        """The sentence.

        >>> Tour([Lesson("basics", "Basics", "Why?", seconds=2.5)]).told()
        '1 lesson in 2.50 s.'
        """
        took = seconds(sum(number(lesson.seconds) or 0.0 for lesson in self.lessons))
        return words(self.sentence) or f"{count(len(self.lessons), 'lesson')} in {took}."


def lessons_of(lessons: Sequence[Lesson]) -> list[Data]:
    """The lessons, in their order; no two have the same key, as links lead to it."""
    taken: set[str] = set()
    return [_lesson(lesson, _key(lesson.key, taken)) for lesson in lessons]


def _key(key: str, taken: set[str]) -> str:
    """A name that can be a part of an address, and that no other lesson has."""
    plain = _NOT_IN_AN_ADDRESS.sub("-", key).strip("-")[:80] or "lesson"
    found, position = plain, 1
    while found in taken:
        position += 1
        found = f"{plain}-{position}"
    taken.add(found)
    return found


def _lesson(lesson: Lesson, key: str) -> Data:
    return {
        "key": key,
        "title": words(lesson.title),
        "question": paragraph(lesson.question),
        "theory": [paragraph(text) for text in lesson.theory],
        "evidence": [_evidence(item) for item in lesson.evidence],
        "answer": [paragraph(text) for text in lesson.answer],
        "notes": [paragraph(text) for text in lesson.notes],
        "seconds": number(lesson.seconds) or 0.0,
    }


def _evidence(item: Remark | Table | Listing) -> Data:
    if isinstance(item, Remark):
        return {"kind": "remark", "text": paragraph(item.text)}
    if isinstance(item, Table):
        return {
            "kind": "table",
            "title": words(item.title),
            "columns": [
                {"title": words(name.removeprefix(">")), "align": "right" if name.startswith(">") else "left"}
                for name in item.columns
            ],
            "rows": [[words(cell) for cell in row] for row in item.rows],
        }
    return {
        "kind": "listing",
        "title": words(item.title),
        "language": item.language if item.language in (*_HIGHLIGHTED, "diff") else "text",
        "lines": _lines(item),
    }


def _lines(listing: Listing) -> list[Line]:
    """All lines, or the first ones and a word about the rest.

    A text that is longer is cut before it is highlighted: that takes a second for ten thousand lines.
    """
    lines = listing.text.replace("\r\n", "\n").strip("\n").split("\n")
    kept = "\n".join(lines[:MOST_LINES])
    found = highlighted(kept, listing.language if listing.language in _HIGHLIGHTED else "text")
    more = len(lines) - MOST_LINES
    return found if more <= 0 else [*found, [f"… {count(more, 'more line')} not shown"]]
