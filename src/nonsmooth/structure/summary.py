"""What was seen of the kinks of a problem, to be read by people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.constraints import ConstraintReading
from nonsmooth.structure.reading import UNWATCHED, Reading


@dataclass(frozen=True)
class KinkSource:
    """One operation of the problem that has kinks."""

    kind: str
    """"abs", "relu", "max", …"""
    line: str
    """Where the function calls it, as `file:line`; empty where that is not known."""
    terms: int
    """How many kinks it has: one for each number, one less than the entries of each maximum, one for each Euclidean norm."""
    active: int
    """How many of them the answer lies on."""
    exact: int
    """At how many of these the argument is 0, and not just nearly so: the zeros of a sparse answer, for example."""
    constraint: bool = False
    """Whether a constraint depends on it, and not the objective."""


@dataclass(frozen=True)
class Structure:
    """The kinks that can be seen in the program, at the answer of a run."""

    followed: bool
    """Whether the run went by them; a run that did not looked for kinks by stepping over them."""
    sources: tuple[KinkSource, ...]
    hidden: tuple[str, ...]
    """The first operation found in the objective that may have kinks that cannot be seen."""
    assumptions: tuple[str, ...] = ()
    """The first operation found in parts that are given as smooth that may have kinks; verdicts do not rely on the promise."""
    unread: str | None = None
    """The first that may have some in the constraints; where it is one, their kinks were found by stepping over them."""

    @property
    def terms(self) -> int:
        """How many kinks there are."""
        return sum(source.terms for source in self.sources)

    @property
    def active(self) -> int:
        """How many of them the answer lies on."""
        return sum(source.active for source in self.sources)

    @property
    def exact(self) -> int:
        """At how many of these the argument is exactly 0."""
        return sum(source.exact for source in self.sources)

    def __str__(self) -> str:
        if self.hidden:
            return f"kinks found by stepping over them, because not all can be seen: {self.hidden[0]}"
        unread = "" if self.unread is None else f"kinks of constraints found by stepping over them: {self.unread}"
        if not self.terms:
            return unread or "no kinks in the program"
        how = "followed" if self.followed else "seen, but found by stepping over them"
        lines = [f"{self.terms} kinks {how}, {self.active} active at the answer ({self.exact} at exactly 0)"]
        for source in self.sources:
            where = f" at {source.line}" if source.line else ""
            of = ", of a constraint" if source.constraint else ""
            lines.append(f"  {source.kind}{where}{of}: {source.terms}, {source.active} active ({source.exact} at exactly 0)")
        lines += [f"  given as smooth, and not seen to be: {reason}" for reason in self.assumptions]
        return "\n".join([*lines, unread] if unread else lines)


def summarize(reading: Reading | None, arguments: Arguments, *, followed: bool, radius: float) -> Structure:
    """What a reading at an answer says; kinks within a radius count as active."""
    if reading is None or reading.hidden:
        return Structure(False, (), () if reading is None else reading.hidden)
    sources = [*_sources(reading, arguments, radius)]
    if reading.constraints is not None:
        sources += _sources(reading.constraints, arguments, radius)
    assumptions = reading.assumptions if followed else tuple(reason for reason in reading.assumptions if reason != UNWATCHED)
    return Structure(followed, tuple(sources), (), assumptions, reading.unread)


def _sources(reading: Reading | ConstraintReading, arguments: Arguments, radius: float) -> Iterator[KinkSource]:
    terms, constraint = reading.terms, isinstance(reading, ConstraintReading)
    near, exact = terms.near(radius), terms.at_kink(0.0)
    _, first = np.unique(terms.balls, return_index=True)
    counted = ~terms.round | np.isin(np.arange(len(terms)), first)  # of each norm one entry
    for number, (kind, node) in enumerate(zip(reading.kinds, reading.nodes, strict=True)):
        mine = (terms.sources == number) & counted
        if mine.any():
            count, active, zero = (int((chosen & mine).sum()) for chosen in (mine, near, near & exact))
            yield KinkSource(kind, arguments.line_of(node), count, active, zero, constraint)
