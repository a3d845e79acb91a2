"""What was seen of the kinks of a function, to be read by people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.reading import UNWATCHED, Reading


@dataclass(frozen=True)
class KinkSource:
    """One operation of the function that has kinks."""

    kind: str
    """"abs", "relu", "max", …"""
    line: str
    """Where the function calls it, as `file:line`; empty where that is not known."""
    terms: int
    """How many kinks it has: one for each number, or one less than the entries of each maximum."""
    active: int
    """How many of them the answer lies on."""


@dataclass(frozen=True)
class Structure:
    """The kinks of the objective that can be seen in the program, at the answer of a run."""

    followed: bool
    """Whether the run went by them; a run that did not looked for kinks by stepping over them."""
    sources: tuple[KinkSource, ...]
    hidden: tuple[str, ...]
    """The first operation found that may have kinks that cannot be seen."""
    assumptions: tuple[str, ...] = ()
    """The first operation found in parts that are given as smooth that may have kinks; verdicts do not rely on the promise."""

    @property
    def terms(self) -> int:
        """How many kinks there are."""
        return sum(source.terms for source in self.sources)

    @property
    def active(self) -> int:
        """How many of them the answer lies on."""
        return sum(source.active for source in self.sources)

    def __str__(self) -> str:
        if self.hidden:
            return f"kinks found by stepping over them, because not all can be seen: {self.hidden[0]}"
        if not self.terms:
            return "no kinks in the program of the objective"
        how = "followed" if self.followed else "seen, but found by stepping over them"
        lines = [f"{self.terms} kinks {how}, the answer lies on {self.active}"]
        for source in self.sources:
            where = f" at {source.line}" if source.line else ""
            lines.append(f"  {source.kind}{where}: {source.terms}, {source.active} active")
        lines += [f"  given as smooth, and not seen to be: {reason}" for reason in self.assumptions]
        return "\n".join(lines)


def summarize(reading: Reading | None, arguments: Arguments, *, followed: bool, radius: float) -> Structure:
    """What a reading at an answer says; kinks within a radius count as active."""
    if reading is None or reading.hidden:
        return Structure(False, (), () if reading is None else reading.hidden)
    terms = reading.terms
    near = np.abs(terms.values) <= radius * np.linalg.norm(terms.rows, axis=1)
    sources = []
    for number, (kind, node) in enumerate(zip(reading.kinds, reading.nodes, strict=True)):
        mine = terms.sources == number
        if mine.any():
            sources.append(KinkSource(kind, arguments.line_of(node), int(mine.sum()), int((near & mine).sum())))
    assumptions = reading.assumptions if followed else tuple(reason for reason in reading.assumptions if reason != UNWATCHED)
    return Structure(followed, tuple(sources), (), assumptions)
