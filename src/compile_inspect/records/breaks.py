"""Graph breaks: one record per cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.locations import Location


class BreakEffect(Enum):
    """What a graph break did to the frame it happened in."""

    SPLIT = "the graph was split and tracing resumed after the line"
    SKIPPED = "the whole frame runs in eager mode"
    RAISED = "an exception reached the program"


@dataclass(frozen=True)
class GraphBreak:
    """One cause of graph breaks: a kind at a user line, however many frames ran into it.

    `location` is the innermost line outside torch; `own_location` the innermost line outside every
    installed package, which is where the user can act.
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
