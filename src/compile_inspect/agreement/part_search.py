"""Find the part of a compiler that makes a result wrong: the one without which the result is right.

If a lowering is left out, aten's own kernel runs for that node while everything else is compiled, and fused, as before.
This finds faults that appear only when several operations are compiled together, which no prefix of the graph shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from compile_inspect.errors import InspectError
from compile_inspect.torch_private import DECOMPOSITIONS, LOWERINGS, PASSES, CompilerPart, GraphNode

Decide = Callable[[CompilerPart], bool]
MAX_SEARCH_SECONDS = 600.0
"""Time limit of a search: it compiles the whole function about twenty times, which takes too long for a large model."""


class SearchTimeoutError(InspectError):
    """A search took too long."""


IsRight = Callable[[Decide], bool]
"""Compiles with some parts left out, runs at the point in question, and returns whether the result agrees with eager."""


@dataclass(frozen=True)
class Culprit:
    """A part of a compiler without which the result is right."""

    part: CompilerPart
    sole: bool
    """Whether leaving out this part alone is enough."""
    partner: CompilerPart | None = None
    """Where `part` is not the only one: another part without which the result is right too, or that is wrong as well."""
    changed_nodes: tuple[GraphNode, ...] = ()
    """For a pass: the nodes that it removed or changed."""

    @property
    def needs_both(self) -> bool:
        """Whether the fault needs two parts, so that leaving out either one removes it."""
        return self.sole and self.partner is not None


class PartSearch:
    """A search over the parts that one compilation is made of."""

    def __init__(self, is_right: IsRight, seconds: float = MAX_SEARCH_SECONDS) -> None:
        self.is_right = is_right
        self.parts: list[CompilerPart] = []
        self.runs = 0
        self.deadline = perf_counter() + seconds

    def list_parts(self) -> bool:
        """Compile with nothing left out, and record every part; returns whether the result is right after all."""

        def note(part: CompilerPart) -> bool:
            self.parts.append(part)
            return False

        return self._is_right(note)

    def find(self, kind: str) -> Culprit | None:
        """The part of a kind that is to blame; None if the result stays wrong with all of them left out."""
        keys = self._keys(kind)
        if not keys or not self._right_without(kind, keys):
            return None
        # Find the shortest run of parts from the front, and from the back, without which the result is right. For one
        # fault both end at the same part. For a fault of two parts together, the front one ends at the first of them and
        # the back one at the second. For two faults it is the other way round.
        front = _shortest(len(keys), lambda count: self._right_without(kind, keys[:count]))
        back = len(keys) - _shortest(len(keys), lambda count: self._right_without(kind, keys[len(keys) - count :]))
        part = self._part(kind, keys[back])
        sole = len(keys) == 1 or self._right_without(kind, [keys[back]])
        partner = None if front - 1 == back else self._part(kind, keys[front - 1])
        # A pass may only leave a note for a later one; then report what its partner changed.
        changed_nodes = self._changed_by(kind, keys[back]) or self._changed_by(kind, keys[front - 1])
        return Culprit(part, sole, partner, changed_nodes)

    def _keys(self, kind: str) -> list[Any]:
        """Keys that identify the parts of a kind across compilations, in order."""
        keys = _PartKeys(kind)
        return list(dict.fromkeys(keys.of(part) for part in self.parts if part.kind == kind))

    def _part(self, kind: str, key: Any) -> CompilerPart:
        keys = _PartKeys(kind)
        return next(part for part in self.parts if part.kind == kind and keys.of(part) == key)

    def _right_without(self, kind: str, selected_keys: Sequence[Any]) -> bool:
        keys = _PartKeys(kind)
        return self._is_right(lambda part: part.kind == kind and keys.of(part) in selected_keys)

    def _is_right(self, decide: Decide) -> bool:
        if perf_counter() > self.deadline:
            raise SearchTimeoutError(f"the search exceeded its time limit at compilation {self.runs}")
        self.runs += 1
        return self.is_right(decide)

    def _changed_by(self, kind: str, key: Any) -> tuple[GraphNode, ...]:
        """What a pass changed in its graphs: the next pass receives the result."""
        passes = [part for part in self.parts if part.kind == PASSES]
        changed_nodes: list[GraphNode] = []
        for part, following in itertools.pairwise(passes):
            if kind == PASSES and part.name == key and following.nodes:
                changed_nodes += _changed_nodes(part.nodes, following.nodes)
        return tuple(changed_nodes)


class _PartKeys:
    """Keys that identify the parts of one kind; call `of` in the order in which parts are compiled."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.number = -1

    def of(self, part: CompilerPart) -> Any:
        """Leaving out a decomposition also removes those inside it, which would shift numbers; a pass runs many times."""
        self.number += 1
        if self.kind == LOWERINGS:
            return self.number
        return (part.operation, part.location) if self.kind == DECOMPOSITIONS else part.name


def _changed_nodes(before: Sequence[GraphNode], after: Sequence[GraphNode]) -> list[GraphNode]:
    """Nodes that a pass removed or altered; removed nodes that others still read come first, unused ones last."""
    texts = {node.name: node.text for node in after}
    removed = [node for node in before if node.name not in texts]
    inputs_in_use = {name for node in before if node.name in texts for name in node.inputs}
    altered = [node for node in before if texts.get(node.name, node.text) != node.text]
    needed = [node for node in removed if node.name in inputs_in_use]
    return [*needed, *altered, *(node for node in removed if node not in needed)]


def _shortest(limit: int, suffices: Callable[[int], bool]) -> int:
    """The smallest count that suffices, by bisection; `limit` is known to suffice.

    >>> _shortest(10, lambda count: count >= 7)
    7
    """
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle + 1
    return low
