"""Graph breaks, one record per cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.locations import Location


class BreakEffect(Enum):
    """What a graph break did to the frame it happened in."""

    SPLIT = "the graph was split and tracing resumed after the line"
    SKIPPED = "the whole frame runs in eager mode"
    MIXED = "some frames were split at the line, others run entirely in eager mode"
    RAISED = "an exception reached the program"


@dataclass(frozen=True, repr=False)
class GraphBreak:
    """One cause of graph breaks: one kind of break at one line, for all frames that reach it.

    `location` is where the break happened: the innermost line outside torch, or torch's own line if no library is between it
    and the user's code. `own_location` is the innermost line outside all installed packages, which is the line that the user
    can change; it is None if no such line is inside compiled code. `parent` is the index in `Inspection.breaks` of the break
    that led to this one: Python ran the line of the parent, and code called from that line broke in turn. Fixing the parent
    removes both.
    """

    kind: str
    location: Location | None
    own_location: Location | None
    effect: BreakEffect
    identifier: str | None = None
    link: str | None = None
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    traced_instruction: str = ""
    stack: int | None = None
    compilations: tuple[str, ...] = ()
    hits: int = 1
    text: str = ""
    parent: int | None = None

    def __repr__(self) -> str:
        """Kind and location.

        >>> GraphBreak("Data-dependent branching", Location("model.py", 7), None, BreakEffect.SPLIT, "GB0170")
        GraphBreak(Data-dependent branching, GB0170, model.py:7, hits: 1)
        """
        parts = [self.kind, self.identifier, str(self.own_location or self.location or ""), f"hits: {self.hits}"]
        return f"GraphBreak({', '.join(filter(None, parts))})"

    def __str__(self) -> str:
        """What happened, why, and what torch suggests."""
        place = self.own_location or self.location
        lines = [f"{self.kind}{f' ({self.identifier})' if self.identifier else ''}: {self.effect.value}"]
        lines += [f"  {place}: {place.code}" if place.code else f"  {place}"] if place is not None else []
        lines += [f"  {self.explanation}"] if self.explanation else []
        return "\n".join([*lines, *(f"  - {hint}" for hint in self.hints)])
