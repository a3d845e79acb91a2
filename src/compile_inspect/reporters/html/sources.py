"""The recorded source files: the user's own in full, those of libraries reduced to the compiled functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from compile_inspect.records import Inspection
from compile_inspect.records.locations import is_library_file, is_torch_file
from compile_inspect.reporters.html.highlighting import highlighted
from compile_inspect.reporters.html.places import Places, shown_lines

_CONTEXT_LINES = 3
_MAX_FULL_LINES = 2_000
"""The user's own files up to this length are shown in full."""


def sources_of(inspection: Inspection, places: Places) -> list[dict[str, Any]]:
    """Every recorded file that records refer to, the user's own first."""
    relevant_lines = shown_lines(inspection)
    sources = []
    for file, text in {**inspection.library_sources, **inspection.sources}.items():
        lines = relevant_lines.get(file, set())
        if is_torch_file(file) or not lines:
            continue
        parts = highlighted(text)
        whole = not is_library_file(file) and len(parts) <= _MAX_FULL_LINES
        ranges = [(1, len(parts))] if whole else _pieces(text, lines, len(parts))
        pieces = [{"first": first, "lines": parts[first - 1 : last]} for first, last in ranges]
        sources.append({"path": places.path(file), "total": len(parts), "pieces": pieces})
    library = [bool(item["library"]) for item in places.paths()]
    return sorted(sources, key=lambda item: library[item["path"]])


def _pieces(text: str, lines: Iterable[int], total: int) -> list[tuple[int, int]]:
    """The ranges of lines to show: each relevant line with its whole function, or with some context.

    >>> _pieces("def f(x):\\n    y = x\\n    return y\\n" + "\\n" * 20, [2], 23)
    [(1, 3)]
    """
    functions = _functions(text)
    ranges: set[tuple[int, int]] = set()
    for line in lines:
        around = [item for item in functions if item[0] <= line <= item[1]]
        inner = max(around, default=None)
        ranges.add(inner or (line - _CONTEXT_LINES, line + _CONTEXT_LINES))
    merged: list[tuple[int, int]] = []
    for first, last in sorted((max(1, first), min(total, last)) for first, last in ranges if first <= total):
        if merged and first <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _functions(text: str) -> list[tuple[int, int]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        (min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
