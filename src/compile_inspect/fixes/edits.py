"""Edits that several fixers share: guard, delete or insert statements, and choose names."""

from __future__ import annotations

import ast
import io
import tokenize

from compile_inspect.fixes.expressions import full_name as full_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_name(source: SourceFile, module: str) -> tuple[str, Replacement | None]:
    """The name of a module in this file, and the import that must be added for it, if any."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import) and function_of(source, node) is None:
            for alias in node.names:
                if alias.name == module:
                    return alias.asname or module, None
    return module, source.insert_import(f"import {module}")


def is_alone(source: SourceFile, statement: ast.stmt) -> bool:
    """Whether only white space and a comment share the lines of a statement."""
    (line, column), (end_line, end_column) = source.span(statement)
    after = source.lines[end_line - 1][end_column:].strip()
    return not source.lines[line - 1][:column].strip() and (not after or after.startswith("#"))


def comments_on_lines(source: SourceFile, first: int, last: int) -> list[str]:
    """The comments on these lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    return [item.string for item in tokens if item.type == tokenize.COMMENT and first <= item.start[0] <= last]


def guard(source: SourceFile, statement: ast.stmt, condition: str) -> Replacement | None:
    """Put a statement under a condition; None if indenting its lines would change their meaning."""
    if not is_alone(source, statement):
        return None
    for node in ast.walk(statement):
        text = source.segment(node) if isinstance(node, (ast.Constant, ast.JoinedStr)) else ""
        if "\n" in text and ('"""' in text or "'''" in text or "\\\n" in text):
            return None
    lines = source.segment(statement).split("\n")
    inner = [source.indent_unit + line if line.strip() else line for line in lines[1:]]
    return source.replace(
        statement,
        "\n".join([f"if {condition}:", source.indent(statement) + source.indent_unit + lines[0], *inner]).replace("\r", ""),
    )


def delete(source: SourceFile, statement: ast.stmt) -> Replacement:
    """Delete a statement but not the comments on its lines; leave `pass` where a statement is required."""
    parent = source.parents.get(statement)
    bodies = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    only_statement = any(isinstance(body, list) and body == [statement] for body in bodies)
    (line, _), (last, _) = source.span(statement)
    if only_statement or last >= len(source.lines) or not is_alone(source, statement):
        return source.replace(statement, "pass")
    indent = source.indent(statement)
    comment_lines = "".join(f"{indent}{comment.rstrip()}{source.newline}" for comment in comments_on_lines(source, line, last))
    return Replacement(source.file, (line, 0), (last + 1, 0), source.between((line, 0), (last + 1, 0)), comment_lines)


def insert_after(source: SourceFile, statement: ast.stmt, lines: list[str]) -> Replacement:
    """Insert lines after a statement with the same indentation."""
    line, indent = source.span(statement)[1][0] + 1, source.indent(statement)
    text = "".join(f"{indent}{item}{source.newline}" if item else source.newline for item in lines)
    return Replacement(source.file, (line, 0), (line, 0), "", text)


def top_level_statement(source: SourceFile, node: ast.AST) -> ast.stmt | None:
    """The module-level statement that contains a node."""
    for item in [node, *source.ancestors(node)]:
        if isinstance(item, ast.stmt) and isinstance(source.parents.get(item), ast.Module):
            return item
    return None


def function_of(source: SourceFile, node: ast.AST) -> Function | None:
    """The innermost function that contains a node."""
    return next((item for item in source.ancestors(node) if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


def uses(scope: ast.AST, name: str) -> list[ast.Name]:
    """Where a name is read, written or deleted within a scope."""
    return [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]


def free_name(source: SourceFile, preferred_name: str) -> str:
    """A name that the file does not use, as close to the preferred one as possible."""
    used_names = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    used_names |= {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    used_names |= {
        node.name for node in ast.walk(source.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            used_names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    number, name = 1, preferred_name
    while name in used_names:
        number, name = number + 1, f"{preferred_name}_{number + 1}"
    return name


def functions_named(source: SourceFile, name: str) -> list[Function]:
    """The functions and methods of the file with this name."""
    return [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name
    ]


def without_keyword(source: SourceFile, call: ast.Call, name: str) -> Replacement | None:
    """Remove a keyword argument of a call; None if it is missing, is the first argument, or follows a comment."""
    all_arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments = sorted(all_arguments, key=lambda item: (item.lineno, item.col_offset))
    for index, item in enumerate(arguments):
        if isinstance(item, ast.keyword) and item.arg == name:
            if index == 0:
                return None
            start, end = source.span(arguments[index - 1])[1], source.span(item)[1]
            text = source.between(start, end)
            return None if "#" in text or ")" in text[: text.index(name)] else Replacement(source.file, start, end, text, "")
    return None


def with_items(node: ast.AST | None) -> list[ast.withitem]:
    """The managers that a `with` statement enters; none for any other node."""
    return node.items if isinstance(node, (ast.With, ast.AsyncWith)) else []


def callee(node: ast.expr) -> ast.expr:
    """The function of a call; any other expression unchanged."""
    return node.func if isinstance(node, ast.Call) else node


def is_unused(source: SourceFile, block: ast.AST, item: ast.withitem) -> bool:
    """Whether the value of a manager is never used."""
    if item.optional_vars is None:
        return True
    function = function_of(source, block)
    name = item.optional_vars
    return function is not None and isinstance(name, ast.Name) and len(uses(function, name.id)) == 1


def argument_names(function: Function | None) -> set[str]:
    """The names of a function's parameters, without `*args` and `**kwargs`."""
    parameters = function.args if function is not None else ast.arguments([], [], None, [], [], None, [])
    return {item.arg for item in [*parameters.args, *parameters.kwonlyargs, *parameters.posonlyargs]}


def parenthesized(source: SourceFile, node: ast.expr) -> str:
    """The text of an expression, in parentheses if an attribute access after it needs them."""
    text = source.segment(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"
