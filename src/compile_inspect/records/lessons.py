"""The results of a guided tour: questions, the measured evidence, and the answers that follow from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    """A sentence among the evidence."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of text cells. A column whose name starts with `>` is right-aligned."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Listing:
    """Code or text; `language` is `python`, `cpp`, `diff` or `text`."""

    title: str
    text: str
    language: str = "text"


@dataclass(frozen=True)
class Lesson:
    """One phase or topic of the tour, as it was run.

    `answer` has sentences with figures of this run; `notes` list what could not run on this machine, and why.
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
    """Whether it ended with an exception: then there is no answer, and a note gives the reason."""
