"""Lines that no input reaches: no trial compares a side of a branch that is never taken."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from compile_inspect.fixes.source import read
from compile_inspect.records.fixes import Proposal
from compile_inspect.records.locations import is_library_file

Line = tuple[str, int]


def executed_lines(calls: Iterable[Callable[[], object]]) -> set[Line]:
    """The lines outside installed packages that these calls execute; an existing trace function is restored afterward."""
    lines: set[Line] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if is_library_file(file):
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        return trace

    before = sys.gettrace()
    for call in calls:
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
    return lines


def unreached_lines(proposal: Proposal, executed: set[Line]) -> list[Line]:
    """Lines that a proposal replaces and that no call executed."""
    unreached: list[Line] = []
    for file in dict.fromkeys(item.file for item in proposal.replacements):
        source = read(file)
        if source is None:
            continue
        ranges = [(item.start[0], item.end[0]) for item in proposal.replacements if item.file == file and item.old]
        for node in ast.walk(source.tree):
            if isinstance(node, ast.stmt) and not isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)):
                inside = any(first <= node.lineno <= last for first, last in ranges)
                lines = {(file, line) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
                if inside and not lines & executed:
                    unreached.append((file, node.lineno))
    return sorted(unreached)
