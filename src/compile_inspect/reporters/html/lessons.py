"""The lessons of a tour as the data of a page: question, evidence and answer."""

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

MAX_LISTING_LINES = 5_000
"""Lines of one listing; the module that Inductor generates for a large model can have a hundred thousand."""

_HIGHLIGHTED = ("python", "cpp")
_NOT_IN_AN_ADDRESS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Tour:
    """Lessons, and the page's header for them.

    `sentence` comes first on the page; the default counts the lessons. `origin` names the machine.
    """

    lessons: Sequence[Lesson]
    sentence: str = ""
    origin: str = ""

    def summary(self) -> str:
        """The sentence.

        >>> Tour([Lesson("basics", "Basics", "Why?", seconds=2.5)]).summary()
        '1 lesson in 2.50 s.'
        """
        duration = seconds(sum(number(lesson.seconds) or 0.0 for lesson in self.lessons))
        return words(self.sentence) or f"{count(len(self.lessons), 'lesson')} in {duration}."


def lessons_of(lessons: Sequence[Lesson]) -> list[Data]:
    """The lessons in order, with unique keys, which links refer to."""
    used_keys: set[str] = set()
    return [_lesson(lesson, _key(lesson.key, used_keys)) for lesson in lessons]


def _key(key: str, used_keys: set[str]) -> str:
    """A unique name that can be part of a URL."""
    plain = _NOT_IN_AN_ADDRESS.sub("-", key).strip("-")[:80] or "lesson"
    unique, position = plain, 1
    while unique in used_keys:
        position += 1
        unique = f"{plain}-{position}"
    used_keys.add(unique)
    return unique


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
    """All lines, or the first ones and the number of the others.

    A longer text is cut before it is highlighted, which takes a second for ten thousand lines.
    """
    lines = listing.text.replace("\r\n", "\n").strip("\n").split("\n")
    first_lines = "\n".join(lines[:MAX_LISTING_LINES])
    highlighted_lines = highlighted(first_lines, listing.language if listing.language in _HIGHLIGHTED else "text")
    more = len(lines) - MAX_LISTING_LINES
    return highlighted_lines if more <= 0 else [*highlighted_lines, [f"… {count(more, 'more line')} not shown"]]
