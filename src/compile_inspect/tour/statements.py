"""The statements of a function, as its author wrote them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compile_inspect.records.locations import Location


@dataclass(frozen=True)
class Statement:
    """A statement; for an `if` or a loop, only its header."""

    file: str
    line: int
    last_line: int
    code: str
    nested: bool = False
    """Whether it is in the body of another statement, which may not run."""

    def contains(self, location: Location) -> bool:
        """Whether a line of a stack is part of it."""
        return location.file == self.file and self.line <= location.line <= self.last_line


def statements_of(function: Callable[..., Any]) -> tuple[Statement, ...]:
    """The statements of a function or of a module's forward, in source order; none where there is no source."""
    forward = inspect.unwrap(getattr(function, "forward", function))
    code = getattr(forward, "__code__", None)
    if code is None:
        return ()
    try:
        lines, first = inspect.getsourcelines(forward)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, or a lambda in the middle of a call
        return ()
    body = tree.body[0]
    if not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return ()
    statements = tuple(
        Statement(code.co_filename, node.lineno + first - 1, last_line + first - 1, lines[node.lineno - 1].strip(), nested)
        for node, last_line, nested in _walk(body.body)
    )
    # Several statements on one line count as the first one.
    return tuple({item.line: item for item in reversed(statements)}.values())[::-1]


def _walk(body: list[ast.stmt], *, nested: bool = False) -> Iterator[tuple[ast.stmt, int, bool]]:
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        inner = [item for name in ("body", "orelse", "finalbody") for item in getattr(node, name, [])]
        inner += [item for name in ("handlers", "cases") for part in getattr(node, name, []) for item in part.body]
        last_line = min((item.lineno - 1 for item in inner), default=node.end_lineno or node.lineno)
        yield node, max(last_line, node.lineno), nested
        yield from _walk(inner, nested=True)
