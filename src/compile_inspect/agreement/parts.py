"""Which part of a compiler makes a result wrong: the one without which the result is right.

Leaving a lowering out lets aten's own kernel run for one node while everything else is compiled, and fused, as before.
So faults are found that show only when several operations are compiled together, where no prefix of the graph would
show them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compile_inspect.capture.torch_private import DECOMPOSITIONS, CompilerPart, GraphNode

Decide = Callable[[CompilerPart], bool]
IsRight = Callable[[Decide], bool]
"""Compiles with some parts left out, runs at the point in question, and says whether that does what eager does."""


@dataclass(frozen=True)
class Culprit:
    """A part of a compiler without which the result is right."""

    part: CompilerPart
    sole: bool
    """Whether leaving out this part alone is enough."""
    partner: CompilerPart | None = None
    """Where it is not the only one: another part without which the result is right too, or that is wrong as well."""
    changed: tuple[GraphNode, ...] = ()
    """For a pass: the nodes that it removed or changed."""

    @property
    def together(self) -> bool:
        """Whether the fault takes two parts, each of which cures it when left out."""
        return self.sole and self.partner is not None


class PartSearch:
    """A search over the parts that one compilation is made of."""

    def __init__(self, is_right: IsRight) -> None:
        self.is_right = is_right
        self.parts: list[CompilerPart] = []
        self.runs = 0

    def list_parts(self) -> bool:
        """Compile with nothing left out, noting every part; gives whether the result is right after all."""

        def note(part: CompilerPart) -> bool:
            self.parts.append(part)
            return False

        return self._right(note)

    def find(self, kind: str) -> Culprit | None:
        """The part of a kind that is to blame, None where leaving out all of them does not make the result right."""
        keys = self._keys(kind)
        if not keys or not self._right_without(kind, keys):
            return None
        # The shortest run of parts from the front, and from the back, without which the result is right. One fault:
        # both end at the same part. A fault of two parts together: the front one ends at the first of them, the back
        # one at the second. Two faults: the other way round.
        front = _shortest(len(keys), lambda count: self._right_without(kind, keys[:count]))
        back = len(keys) - _shortest(len(keys), lambda count: self._right_without(kind, keys[len(keys) - count :]))
        part = self._part(kind, keys[back])
        sole = len(keys) == 1 or self._right_without(kind, [keys[back]])
        partner = None if front - 1 == back else self._part(kind, keys[front - 1])
        return Culprit(part, sole, partner, self._changed_by(kind, keys[back]))

    def _keys(self, kind: str) -> list[Any]:
        """What tells parts of a kind apart from one compilation to the next, in order."""
        parts = [part for part in self.parts if part.kind == kind]
        if kind == DECOMPOSITIONS:  # one left out takes those with it that it is made of: numbers would shift
            return list(dict.fromkeys((part.operation, part.location) for part in parts))
        return list(range(len(parts)))

    def _part(self, kind: str, key: Any) -> CompilerPart:
        parts = [part for part in self.parts if part.kind == kind]
        if kind == DECOMPOSITIONS:
            return next(part for part in parts if (part.operation, part.location) == key)
        return parts[key]

    def _right_without(self, kind: str, keys: Sequence[Any]) -> bool:
        wanted = set(keys)
        number = -1

        def decide(part: CompilerPart) -> bool:
            nonlocal number
            if part.kind != kind:
                return False
            number += 1
            return ((part.operation, part.location) if kind == DECOMPOSITIONS else number) in wanted

        return self._right(decide)

    def _right(self, decide: Decide) -> bool:
        self.runs += 1
        return self.is_right(decide)

    def _changed_by(self, kind: str, key: Any) -> tuple[GraphNode, ...]:
        """What a pass did to its graph: the next pass is given what it left."""
        passes = [part for part in self.parts if part.nodes]
        part = self._part(kind, key)
        place = next((index for index, item in enumerate(passes) if item is part), None)
        if place is None or place + 1 == len(passes):
            return ()
        after = {node.name: node.text for node in passes[place + 1].nodes}
        removed = [node for node in part.nodes if node.name not in after]
        altered = [node for node in part.nodes if after.get(node.name, node.text) != node.text]
        return (*removed, *altered)


def _shortest(most: int, suffices: Callable[[int], bool]) -> int:
    """The smallest count that suffices, by bisection; `most` is known to.

    >>> _shortest(10, lambda count: count >= 7)
    7
    """
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle + 1
    return low
