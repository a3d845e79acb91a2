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
    """A statement that does something by itself; of an `if` or a loop it is the line that decides."""

    file: str
    line: int
    last: int
    code: str
    nested: bool = False
    """Whether it stands in the body of another one, and so may not be reached."""

    def holds(self, place: Location) -> bool:
        """Whether a line of a stack is part of it."""
        return place.file == self.file and self.line <= place.line <= self.last


def statements_of(function: Callable[..., Any]) -> tuple[Statement, ...]:
    """The statements of a function or of a module's forward, in the order of the text; none where there is no text."""
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
    found = tuple(
        Statement(code.co_filename, node.lineno + first - 1, last + first - 1, lines[node.lineno - 1].strip(), nested)
        for node, last, nested in _walk(body.body)
    )
    # Several on one line cannot be told apart: the first one stands for them.
    return tuple({item.line: item for item in reversed(found)}.values())[::-1]


def _walk(body: list[ast.stmt], *, nested: bool = False) -> Iterator[tuple[ast.stmt, int, bool]]:
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        inner = [item for name in ("body", "orelse", "finalbody") for item in getattr(node, name, [])]
        inner += [item for name in ("handlers", "cases") for part in getattr(node, name, []) for item in part.body]
        last = min((item.lineno - 1 for item in inner), default=node.end_lineno or node.lineno)
        yield node, max(last, node.lineno), nested
        yield from _walk(inner, nested=True)
