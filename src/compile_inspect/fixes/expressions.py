"""Replace expressions: add parentheses where they are needed, and never lose a comment."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import lru_cache

from compile_inspect.errors import InspectError
from compile_inspect.fixes.base import dotted
from compile_inspect.fixes.source import SourceFile, apply
from compile_inspect.records.fixes import Replacement

_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set)
_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await)


def grouped(source: SourceFile, node: ast.expr) -> str:
    """The text of an expression, in parentheses if `.name` or an operator after it needs them.

    >>> source = SourceFile("f.py", "y = a + b\\n")
    >>> grouped(source, source.statement_at(1).value)
    '(a + b)'
    """
    text = source.segment(node)
    number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return text if isinstance(node, _ATOMS) and not number and _parses(text) else f"({text})"


def embedded(source: SourceFile, node: ast.expr, new: str) -> Replacement | None:
    """Replace an expression; None if a comment would be lost or the result is not valid Python."""
    parent = source.parents.get(node)
    tight = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Await, ast.Starred)) or (
        node in (getattr(parent, "value", None), getattr(parent, "func", None))
        and isinstance(parent, (ast.Attribute, ast.Subscript, ast.Call))
    )
    if not _parses(new) or (tight and isinstance(ast.parse(new, mode="eval").body, _LOOSE)):
        new = f"({new})"
    return checked(source, source.replace(node, new))


def checked(source: SourceFile, change: Replacement) -> Replacement | None:
    """The change itself; None if it would lose a comment or the result is not valid Python."""
    if not set(comments(change.old)) <= set(comments(change.new)):
        return None
    try:
        ast.parse(apply(source.text, [change]))
    except (SyntaxError, InspectError):
        return None
    return change


def comments(text: str) -> list[str]:
    """The comments in a piece of Python."""
    strings = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"({text}\n)").readline):
            if token.type == tokenize.COMMENT:
                strings.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return [line[line.index("#") :] for line in text.split("\n") if "#" in line]
    return strings


def full_name(source: SourceFile, node: ast.AST) -> str:
    """A dotted name with the module it was imported from; a name that is not imported is returned as written.

    >>> source = SourceFile("f.py", "from time import perf_counter as clock\\nclock()\\n")
    >>> full_name(source, source.calls_at(2)[0].func)
    'time.perf_counter'
    """
    first, dot, rest = dotted(node).partition(".")
    return f"{_imported(source).get(first, first)}{dot}{rest}"


def is_imported(source: SourceFile, node: ast.AST) -> bool:
    """Whether the first part of a dotted name was imported in the file."""
    return dotted(node).partition(".")[0] in _imported(source)


@lru_cache(maxsize=32)
def _imported(source: SourceFile) -> dict[str, str]:
    aliases = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            aliases.update(
                {
                    item.asname or item.name.partition(".")[0]: item.name if item.asname else item.name.partition(".")[0]
                    for item in node.names
                }
            )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases.update({item.asname or item.name: f"{node.module}.{item.name}" for item in node.names})
    return aliases


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument of a call for a parameter, by position or by name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position < len(call.args) and not any(isinstance(item, ast.Starred) for item in call.args[: position + 1]):
        return call.args[position]
    return None


def last_value(source: SourceFile, name: str, line: int) -> ast.expr | None:
    """The last value assigned to a name above a line in the same function; None if that is not a simple assignment."""
    function = source.function_at(line)
    value: ast.expr | None = None
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign) and node.lineno < line and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == name and (value is None or node.lineno > value.lineno):
                value = node.value
    return value


def is_parameter(source: SourceFile, name: str, line: int) -> bool:
    """Whether the function around a line has a parameter of this name."""
    function = source.function_at(line)
    if function is None:
        return False
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return any(item is not None and item.arg == name for item in parameters)


def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
