"""A readable summary of the visible kinks of a problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.constraints import ConstraintReading
from nonsmooth.structure.kink_reading import UNWATCHED, Reading


@dataclass(frozen=True)
class KinkSource:
    """One operation of the problem that has kinks."""

    kind: str
    """"abs", "relu", "max", …"""
    line: str
    """Where the function calls it, as `file:line`; empty if unknown."""
    terms: int
    """The number of its kinks: one for each entry, one less than the entries of each maximum, one for each Euclidean norm."""
    active: int
    """The number of its kinks on which the solution lies."""
    exact: int
    """The number of active kinks whose argument is exactly 0, such as the zeros of a sparse solution."""
    constraint: bool = False
    """Whether it belongs to a constraint, not to the objective."""


@dataclass(frozen=True)
class Structure:
    """The visible kinks of the program, at the final point of a run."""

    followed: bool
    """Whether the run used them; otherwise it detected kinks at trial points."""
    sources: tuple[KinkSource, ...]
    hidden: tuple[str, ...]
    """The first operation of the objective that may have kinks that cannot be read."""
    assumptions: tuple[str, ...] = ()
    """The first operation in parts declared smooth that may have kinks; verdicts do not rely on the declaration."""
    unread: str | None = None
    """The first operation of the constraints that may have unreadable kinks; if any, the run detected them at trial points."""

    @property
    def terms(self) -> int:
        """The number of visible kinks."""
        return sum(source.terms for source in self.sources)

    @property
    def active(self) -> int:
        """The number of kinks on which the solution lies."""
        return sum(source.active for source in self.sources)

    @property
    def exact(self) -> int:
        """The number of active kinks whose argument is exactly 0."""
        return sum(source.exact for source in self.sources)

    def __str__(self) -> str:
        if self.hidden:
            return f"kinks detected at trial points, because not all are visible: {self.hidden[0]}"
        unread = "" if self.unread is None else f"kinks of constraints detected at trial points: {self.unread}"
        if not self.terms:
            return unread or "no kinks in the program"
        use = "used by the model" if self.followed else "not used by the model"
        lines = [f"{self.terms} visible kinks, {use}; {self.active} active at the solution ({self.exact} exactly)"]
        for source in self.sources:
            where = f" at {source.line}" if source.line else ""
            of = ", of a constraint" if source.constraint else ""
            lines.append(f"  {source.kind}{where}{of}: {source.terms}, {source.active} active ({source.exact} exactly)")
        lines += [f"  declared smooth, but not known to be: {reason}" for reason in self.assumptions]
        return "\n".join([*lines, unread] if unread else lines)


def summarize(reading: Reading | None, arguments: Arguments, *, followed: bool, radius: float) -> Structure:
    """Summarize a reading at a solution; kinks within a radius count as active."""
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
    counted = ~terms.in_ball | np.isin(np.arange(len(terms)), first)  # one entry per norm
    for number, (kind, node) in enumerate(zip(reading.kinds, reading.nodes, strict=True)):
        mine = (terms.sources == number) & counted
        if mine.any():
            count, active, zero = (int((chosen & mine).sum()) for chosen in (mine, near, near & exact))
            yield KinkSource(kind, arguments.line_of(node), count, active, zero, constraint)
