"""A source file as text that can be changed at places its syntax tree names, byte by byte where nothing is meant to change."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from compile_inspect.errors import InspectError
from compile_inspect.records.fixes import Replacement


class SourceFile:
    """The text of a file and its syntax tree.

    >>> source = SourceFile("model.py", "def f(x):\\n    print(x)\\n    return x\\n")
    >>> source.segment(source.statement_at(2))
    'print(x)'
    >>> change = source.replace(source.statement_at(2), "pass")
    >>> apply(source.text, [change])
    'def f(x):\\n    pass\\n    return x\\n'
    """

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.lines = text.split("\n")
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.tree = ast.parse(text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that holds each node."""
        return {child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)}

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def nodes_at(self, line: int) -> list[ast.AST]:
        """All nodes that stand on a line at least in part, outer ones first."""
        return [node for node in ast.walk(self.tree) if _first(node) <= line <= _last(node)]

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement on a line. Of a compound statement (`if`, `for`) only its head counts."""
        found = None
        for node in self.nodes_at(line):
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                if isinstance(body, list) and body and line >= _first(body[0]) > _first(node):
                    continue
                found = node
        return found

    def statements_at(self, line: int) -> list[ast.stmt]:
        """The statements that share a line, as with semicolons between them; the innermost one alone where it has the line."""
        last = self.statement_at(line)
        if last is None:
            return []
        body = next((body for body in _bodies(self.parents.get(last)) if last in body), [last])
        return [item for item in body if _first(item) <= line <= _last(item)]

    def shares_its_line(self, statement: ast.stmt) -> bool:
        """Whether something else stands on a line of a statement: another one, or the head of the one it belongs to."""
        before = self.lines[_first(statement) - 1][: self.span(statement)[0][1]]
        after = self.lines[_last(statement) - 1][self.span(statement)[1][1] :]
        return bool(before.strip()) or after.lstrip().startswith(";")

    def calls_at(self, line: int) -> list[ast.Call]:
        """The calls that begin or end on a line, outer ones first, within the innermost statement there."""
        statement = self.statement_at(line)
        if statement is None:
            return []
        heads = set(_head(statement))
        return [node for node in ast.walk(statement) if isinstance(node, ast.Call) and node in heads]

    def head(self, statement: ast.stmt) -> list[ast.AST]:
        """The nodes of a statement without those of the statements in its body."""
        return list(_head(statement))

    def function_at(self, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function whose body holds a line."""
        found = None
        for node in self.nodes_at(line):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found = node
        return found

    def segment(self, node: ast.AST | None) -> str:
        """The text of a node, comments and line breaks inside included."""
        if node is None:
            return ""
        (line, column), (end_line, end_column) = self.span(node)
        return self.between((line, column), (end_line, end_column))

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """The text from one (line, column) to another."""
        (line, column), (end_line, end_column) = start, end
        if line == end_line:
            return self.lines[line - 1][column:end_column]
        middle = self.lines[line : end_line - 1]
        return "\n".join([self.lines[line - 1][column:], *middle, self.lines[end_line - 1][:end_column]])

    def span(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where a node begins and ends, columns in characters."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start = self._character(first, node.col_offset)  # type: ignore[attr-defined]
        return (first, start), (last, self._character(last, node.end_col_offset))  # type: ignore[attr-defined]

    def _character(self, line: int, offset: int) -> int:
        """The column in characters of an offset in bytes, which is what Python's parser counts."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement."""
        line = self.lines[_first(statement) - 1]
        return line[: len(line) - len(line.lstrip())]

    @property
    def step(self) -> str:
        """One level of indentation, as this file has it."""
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body and _first(body[0]) > _first(node):
                inner, outer = self.indent(body[0]), self.indent(node)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    def replace(self, node: ast.AST, new: str) -> Replacement:
        """Write something else in the place of a node."""
        start, end = self.span(node)
        return Replacement(self.file, start, end, self.between(start, end), self._ended(new))

    def _ended(self, text: str) -> str:
        """Text with the line ends of this file."""
        return text if self.newline == "\n" else text.replace("\r\n", "\n").replace("\n", self.newline)

    def replace_range(self, first: ast.stmt, last: ast.stmt, lines: list[str]) -> Replacement:
        """Write whole lines in the place of all from one statement to another; they are indented as the first was."""
        start, end = self.span(first)[0], self.span(last)[1]
        text = "\n".join([lines[0], *(f"{self.indent(first)}{line}" if line else "" for line in lines[1:])])
        return Replacement(self.file, start, end, self.between(start, end), self._ended(text))

    def insert_before(self, statement: ast.stmt, lines: list[str]) -> Replacement:
        """Write whole lines before a statement, indented as it is; decorators stay with what they decorate."""
        decorators = getattr(statement, "decorator_list", [])
        line = min([_first(statement), *(item.lineno for item in decorators)])
        indent = self.indent(statement)
        text = "".join(f"{indent}{item}\n" if item else "\n" for item in lines)
        return Replacement(self.file, (line, 0), (line, 0), "", self._ended(text))

    def insert_import(self, code: str) -> Replacement | None:
        """Add an import among the first ones; None where it is there."""
        wanted = ast.dump(ast.parse(code).body[0])
        imports = [node for node in self.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        if any(ast.dump(node) == wanted for node in imports):
            return None
        later = [node for node in imports if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
        line = _last(imports[-1]) + 1 if imports else self._first_code_line()
        if later:
            line = _last(later[-1]) + 1
        return Replacement(self.file, (line, 0), (line, 0), "", self._ended(code + "\n"))

    def _first_code_line(self) -> int:
        body = self.tree.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            return _last(body[0]) + 1
        return _first(body[0]) if body else 1

    def names(self, module: str) -> str | None:
        """What a module is called in this file, such as `np` for `numpy`; None where it is not imported as a whole."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == module:
                        return alias.asname or alias.name
        return None


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with the replacements made; raises InspectError where something else stands there now."""
    lines = text.split("\n")
    for item in sorted(replacements, key=lambda item: (item.start, item.end), reverse=True):
        (line, column), (end_line, end_column) = item.start, item.end
        if end_line > len(lines) or line > len(lines):
            if item.old or line > len(lines) + 1:
                raise InspectError(f"{item.file} has changed since it was recorded: it has no line {end_line}")
            lines += [""] * (line - len(lines))
        before, after = lines[line - 1][:column], lines[end_line - 1][end_column:]
        inside = lines[line - 1][column:end_column] if line == end_line else None
        if inside is None:
            inside = "\n".join([lines[line - 1][column:], *lines[line : end_line - 1], lines[end_line - 1][:end_column]])
        if inside != item.old:
            raise InspectError(f"{item.file} has changed since it was recorded: line {line} is not {item.old.strip()!r}")
        lines[line - 1 : end_line] = (before + item.new + after).split("\n")
    return "\n".join(lines)


def difference(file: str, before: str, after: str, *, context: int = 2) -> str:
    """The change as a unified diff.

    >>> print(difference("f.py", "a\\nb\\n", "a\\nc\\n"), end="")
    --- f.py
    +++ f.py
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    # At newlines only: `splitlines` also splits at form feeds.
    parts = [[line for line in re.split(r"(?<=\n)", text) if line] for text in (before, after)]
    found = difflib.unified_diff(parts[0], parts[1], file, file, n=context)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in found)


def read(file: str, recorded: str | None = None, *, disk: bool = True) -> SourceFile | None:
    """The file as it is, or as it was recorded where it is not there or has changed; None where that is no Python.

    Without `disk` no file is opened: the paths in a capture are somebody else's, and may name anything on this machine.
    """
    if not disk:
        return None if recorded is None else _parsed(file, recorded)
    try:
        with Path(file).open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        if recorded is not None and recorded != text.replace("\r\n", "\n"):
            text = recorded
    except (OSError, ValueError):
        text = recorded  # type: ignore[assignment]
    return None if text is None else _parsed(file, text)


@lru_cache(maxsize=32)
def _parsed(file: str, text: str) -> SourceFile | None:
    """Every cause in a file asks for it, and parsing a long one takes a second."""
    try:
        return SourceFile(file, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _first(node: ast.AST) -> int:
    return getattr(node, "lineno", 10**9)


def _last(node: ast.AST) -> int:
    return getattr(node, "end_lineno", -1) or -1


def _bodies(node: ast.AST | None) -> list[list[ast.stmt]]:
    """The lists of statements that a node holds."""
    names = ("body", "orelse", "finalbody")
    return [body for name in names if isinstance(body := getattr(node, name, None), list)]


def _head(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and what is in it, but not the statements of its body."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop(0)
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler))]
