"""Changes that several kinds of fixes make: a statement guarded, deleted or followed by another, and names told apart."""

from __future__ import annotations

import ast
import io
import tokenize

from compile_inspect.fixes.expressions import full_name as full_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_name(source: SourceFile, module: str) -> tuple[str, Replacement | None]:
    """What to call a module in this file, and the import that has to be added for it, if any."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import) and function_of(source, node) is None:
            for alias in node.names:
                if alias.name == module:
                    return alias.asname or module, None
    return module, source.insert_import(f"import {module}")


def is_alone(source: SourceFile, statement: ast.stmt) -> bool:
    """Whether nothing but white space and a comment shares the lines of a statement."""
    (line, column), (end_line, end_column) = source.span(statement)
    after = source.lines[end_line - 1][end_column:].strip()
    return not source.lines[line - 1][:column].strip() and (not after or after.startswith("#"))


def comments(source: SourceFile, first: int, last: int) -> list[str]:
    """The comments on these lines."""
    found = tokenize.generate_tokens(io.StringIO(source.text).readline)
    return [item.string for item in found if item.type == tokenize.COMMENT and first <= item.start[0] <= last]


def guard(source: SourceFile, statement: ast.stmt, condition: str) -> Replacement | None:
    """Put a statement under a condition; None where its lines cannot be indented without a change of meaning."""
    if not is_alone(source, statement):
        return None
    for node in ast.walk(statement):
        text = source.segment(node) if isinstance(node, (ast.Constant, ast.JoinedStr)) else ""
        if "\n" in text and ('"""' in text or "'''" in text or "\\\n" in text):
            return None
    lines = source.segment(statement).split("\n")
    inner = [source.step + line if line.strip() else line for line in lines[1:]]
    return source.replace(
        statement, "\n".join([f"if {condition}:", source.indent(statement) + source.step + lines[0], *inner]).replace("\r", "")
    )


def delete(source: SourceFile, statement: ast.stmt) -> Replacement:
    """Take a statement away, comments on its lines excepted; `pass` stands there where something has to."""
    parent = source.parents.get(statement)
    bodies = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    lonely = any(isinstance(body, list) and body == [statement] for body in bodies)
    (line, _), (last, _) = source.span(statement)
    if lonely or last >= len(source.lines) or not is_alone(source, statement):
        return source.replace(statement, "pass")
    indent = source.indent(statement)
    kept = "".join(f"{indent}{comment.rstrip()}{source.newline}" for comment in comments(source, line, last))
    return Replacement(source.file, (line, 0), (last + 1, 0), source.between((line, 0), (last + 1, 0)), kept)


def insert_after(source: SourceFile, statement: ast.stmt, lines: list[str]) -> Replacement:
    """Write whole lines after a statement, indented as it is."""
    line, indent = source.span(statement)[1][0] + 1, source.indent(statement)
    text = "".join(f"{indent}{item}{source.newline}" if item else source.newline for item in lines)
    return Replacement(source.file, (line, 0), (line, 0), "", text)


def top_level(source: SourceFile, node: ast.AST) -> ast.stmt | None:
    """The statement of the module that holds a node."""
    for item in [node, *source.above(node)]:
        if isinstance(item, ast.stmt) and isinstance(source.parents.get(item), ast.Module):
            return item
    return None


def function_of(source: SourceFile, node: ast.AST) -> Function | None:
    """The innermost function that holds a node."""
    return next((item for item in source.above(node) if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


def uses(scope: ast.AST, name: str) -> list[ast.Name]:
    """Where a name is read, written or deleted within a scope."""
    return [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]


def free_name(source: SourceFile, wanted: str) -> str:
    """A name that is not in use in the file, as close to the wanted one as can be."""
    taken = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    taken |= {
        node.name for node in ast.walk(source.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            taken |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    number, name = 1, wanted
    while name in taken:
        number, name = number + 1, f"{wanted}_{number + 1}"
    return name


def defined(source: SourceFile, name: str) -> list[Function]:
    """The functions of the file that have a name, methods included."""
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ]


def without_keyword(source: SourceFile, call: ast.Call, name: str) -> Replacement | None:
    """A call without one of its keyword arguments; None where it has no such one, or nothing else, or a comment before it."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments = sorted(given, key=lambda item: (item.lineno, item.col_offset))
    for index, item in enumerate(arguments):
        if isinstance(item, ast.keyword) and item.arg == name:
            if index == 0:
                return None
            start, end = source.span(arguments[index - 1])[1], source.span(item)[1]
            text = source.between(start, end)
            return None if "#" in text or ")" in text[: text.index(name)] else Replacement(source.file, start, end, text, "")
    return None


def with_items(node: ast.AST | None) -> list[ast.withitem]:
    """The managers that a `with` enters; none for anything else."""
    return node.items if isinstance(node, (ast.With, ast.AsyncWith)) else []


def callee(node: ast.expr) -> ast.expr:
    """What is called, or the expression itself where nothing is."""
    return node.func if isinstance(node, ast.Call) else node


def is_unused(source: SourceFile, held: ast.AST, item: ast.withitem) -> bool:
    """Whether nobody asks for what a manager gives."""
    if item.optional_vars is None:
        return True
    function = function_of(source, held)
    name = item.optional_vars
    return function is not None and isinstance(name, ast.Name) and len(uses(function, name.id)) == 1


def arguments_of(function: Function | None) -> set[str]:
    """The names of what a function is given."""
    given = function.args if function is not None else ast.arguments([], [], None, [], [], None, [])
    return {item.arg for item in [*given.args, *given.kwonlyargs, *given.posonlyargs]}


def bracketed(source: SourceFile, node: ast.expr) -> str:
    """The text of an expression such that an attribute of it can follow."""
    text = source.segment(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"
