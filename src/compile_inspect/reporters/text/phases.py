"""Phases as a tree: equal names under one parent become one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from compile_inspect.records import Phase


@dataclass
class Branch:
    """All phases of one name under one parent."""

    name: str
    seconds: float = 0.0
    own_seconds: float = 0.0
    times: int = 0
    children: dict[str, Branch] = field(default_factory=dict)

    def descendants(self) -> int:
        """How many branches are below this one."""
        return sum(1 + child.descendants() for child in self.children.values())


def tree(phases: Iterable[Phase]) -> Branch:
    """Nest phases under the phases they ran in; the root has no name and the total time.

    >>> root = tree([Phase("0/0", "compile", 0.0, 3.0, 0, 1.0), Phase("0/0", "lower", 1.0, 2.0, 1, 2.0)])
    >>> root.seconds, list(root.children["compile"].children)
    (3.0, ['lower'])
    """
    root = Branch("")
    # Threads nest independently of each other. A partial capture may lack a parent, so depth only shows which
    # open phases have ended.
    open_phases: dict[int, list[tuple[int, Branch]]] = {}
    for phase in sorted(phases, key=lambda phase: (phase.start, phase.depth)):
        stack = open_phases.setdefault(phase.thread, [])
        while stack and stack[-1][0] >= phase.depth:
            stack.pop()
        parent = stack[-1][1] if stack else root
        if phase.name not in parent.children:
            parent.children[phase.name] = Branch(phase.name)
        branch = parent.children[phase.name]
        branch.seconds += phase.seconds
        branch.own_seconds += phase.own_seconds
        branch.times += 1
        stack.append((phase.depth, branch))
        if parent is root:
            root.seconds += phase.seconds
    return root


def walk(branch: Branch, min_seconds: float, depth: int = 0) -> Iterator[tuple[int, Branch | int, float]]:
    """The branches below one, longest first, with their depth; short ones as a number and their total time."""
    small = 0
    small_seconds = 0.0
    for child in sorted(branch.children.values(), key=lambda child: -child.seconds):
        if child.seconds < min_seconds:
            small += 1 + child.descendants()
            small_seconds += child.seconds
            continue
        yield depth, child, child.seconds
        yield from walk(child, min_seconds, depth + 1)
    if small:
        yield depth, small, small_seconds
