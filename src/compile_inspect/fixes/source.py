"""A source file as text that can be changed at nodes of its syntax tree; all other bytes stay the same."""

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
        """The parent of each node."""
        return {child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)}

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The ancestors of a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def nodes_at(self, line: int) -> list[ast.AST]:
        """All nodes that are at least partly on a line, outer ones first."""
        return [node for node in ast.walk(self.tree) if _first_line(node) <= line <= _last_line(node)]

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement on a line. Of a compound statement (`if`, `for`), only the header counts."""
        innermost = None
        for node in self.nodes_at(line):
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                if isinstance(body, list) and body and line >= _first_line(body[0]) > _first_line(node):
                    continue
                innermost = node
        return innermost

    def statements_at(self, line: int) -> list[ast.stmt]:
        """The statements that share a line, separated by semicolons; only the innermost one if it has the line to itself."""
        last = self.statement_at(line)
        if last is None:
            return []
        body = next((body for body in _bodies(self.parents.get(last)) if last in body), [last])
        return [item for item in body if _first_line(item) <= line <= _last_line(item)]

    def shares_its_line(self, statement: ast.stmt) -> bool:
        """Whether a statement shares its lines with another one, or with the header of the one that contains it."""
        before = self.lines[_first_line(statement) - 1][: self.span(statement)[0][1]]
        after = self.lines[_last_line(statement) - 1][self.span(statement)[1][1] :]
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
        """The innermost function whose body contains a line."""
        innermost = None
        for node in self.nodes_at(line):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                innermost = node
        return innermost

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
        """Convert an offset in bytes, which Python's parser counts, to a column in characters."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))

    def indent(self, statement: ast.stmt) -> str:
        """The white space before a statement."""
        line = self.lines[_first_line(statement) - 1]
        return line[: len(line) - len(line.lstrip())]

    @property
    def indent_unit(self) -> str:
        """One level of indentation in this file."""
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body and _first_line(body[0]) > _first_line(node):
                inner, outer = self.indent(body[0]), self.indent(node)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    def replace(self, node: ast.AST, new: str) -> Replacement:
        """Replace a node."""
        start, end = self.span(node)
        return Replacement(self.file, start, end, self.between(start, end), self._with_file_newlines(new))

    def _with_file_newlines(self, text: str) -> str:
        """Text with the line ends of this file."""
        return text if self.newline == "\n" else text.replace("\r\n", "\n").replace("\n", self.newline)

    def replace_range(self, first: ast.stmt, last: ast.stmt, lines: list[str]) -> Replacement:
        """Replace all from one statement to another by whole lines, indented like the first statement."""
        start, end = self.span(first)[0], self.span(last)[1]
        text = "\n".join([lines[0], *(f"{self.indent(first)}{line}" if line else "" for line in lines[1:])])
        return Replacement(self.file, start, end, self.between(start, end), self._with_file_newlines(text))

    def insert_before(self, statement: ast.stmt, lines: list[str]) -> Replacement:
        """Insert whole lines before a statement and its decorators, with the same indentation."""
        decorators = getattr(statement, "decorator_list", [])
        line = min([_first_line(statement), *(item.lineno for item in decorators)])
        indent = self.indent(statement)
        text = "".join(f"{indent}{item}\n" if item else "\n" for item in lines)
        return Replacement(self.file, (line, 0), (line, 0), "", self._with_file_newlines(text))

    def insert_import(self, code: str) -> Replacement | None:
        """Add an import after the existing ones; None if the file has it already."""
        import_dump = ast.dump(ast.parse(code).body[0])
        imports = [node for node in self.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        if any(ast.dump(node) == import_dump for node in imports):
            return None
        later = [node for node in imports if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
        line = _last_line(imports[-1]) + 1 if imports else self._first_code_line()
        if later:
            line = _last_line(later[-1]) + 1
        return Replacement(self.file, (line, 0), (line, 0), "", self._with_file_newlines(code + "\n"))

    def _first_code_line(self) -> int:
        body = self.tree.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            return _last_line(body[0]) + 1
        return _first_line(body[0]) if body else 1

    def module_alias(self, module: str) -> str | None:
        """The name of a module in this file, such as `np` for `numpy`; None if the module itself is not imported."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == module:
                        return alias.asname or alias.name
        return None


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """Apply replacements to a text; raises InspectError if the text to replace has changed."""
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


def unified_diff(file: str, before: str, after: str, *, context: int = 2) -> str:
    """Format a change as a unified diff.

    >>> print(unified_diff("f.py", "a\\nb\\n", "a\\nc\\n"), end="")
    --- f.py
    +++ f.py
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    # At newlines only: `splitlines` also splits at form feeds.
    parts = [[line for line in re.split(r"(?<=\n)", text) if line] for text in (before, after)]
    lines = difflib.unified_diff(parts[0], parts[1], file, file, n=context)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def read(file: str, recorded: str | None = None, *, disk: bool = True) -> SourceFile | None:
    """Read the current file, or its recorded text if it is missing or has changed; None if that is not valid Python.

    Without `disk`, no file is opened: the paths in a capture come from another machine and may name anything on this one.
    """
    if not disk:
        return None if recorded is None else _parse(file, recorded)
    try:
        with Path(file).open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        if recorded is not None and recorded != text.replace("\r\n", "\n"):
            text = recorded
    except (OSError, ValueError):
        text = recorded  # type: ignore[assignment]
    return None if text is None else _parse(file, text)


@lru_cache(maxsize=32)
def _parse(file: str, text: str) -> SourceFile | None:
    """Parse and cache a file: every cause in it needs the tree, and parsing a long file takes a second."""
    try:
        return SourceFile(file, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _first_line(node: ast.AST) -> int:
    return getattr(node, "lineno", 10**9)


def _last_line(node: ast.AST) -> int:
    return getattr(node, "end_lineno", -1) or -1


def _bodies(node: ast.AST | None) -> list[list[ast.stmt]]:
    """The statement lists of a node."""
    names = ("body", "orelse", "finalbody")
    return [body for name in names if isinstance(body := getattr(node, name, None), list)]


def _head(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without the statements of its body."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop(0)
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler))]
