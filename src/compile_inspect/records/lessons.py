"""The results of a guided tour: questions, the evidence measured for them, and the answers that follow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    """A sentence between pieces of evidence."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of texts. A column whose name starts with `>` is aligned to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Listing:
    """A piece of code or text; `language` is `python`, `cpp`, `diff` or `text`."""

    title: str
    text: str
    language: str = "text"


@dataclass(frozen=True)
class Lesson:
    """One lesson as it was run.

    `answer` contains sentences with the numbers of this run; `notes` say what could not run on this machine, and why.
    """

    key: str
    title: str
    question: str
    theory: tuple[str, ...] = ()
    evidence: tuple[Remark | Table | Listing, ...] = ()
    answer: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    failed: bool = False
    """Whether it raised an exception: then there is no answer, and a note says why."""
