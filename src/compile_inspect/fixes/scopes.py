"""Names in a function (where they are read and written) and statements on a line."""

from __future__ import annotations

import ast
import io
import tokenize

from compile_inspect.fixes.base import BreakSite, last_name
from compile_inspect.fixes.edits import Function as Function
from compile_inspect.fixes.edits import function_of as function_of
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import is_plainly_python


def names(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> list[str]:
    """The names that a node reads (or writes), each once, in source order."""
    nodes = [item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, context)]
    return list(dict.fromkeys(item.id for item in sorted(nodes, key=lambda item: (item.lineno, item.col_offset))))


def parameters(function: Function | ast.Lambda) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    all_arguments = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [item.arg for item in all_arguments if item is not None]


def names_bound_before(source: SourceFile, node: ast.stmt) -> set[str]:
    """The local names that are assigned before a statement in its function, including parameters."""
    function = function_of(source, node)
    if function is None:
        return set()
    names = set(parameters(function))
    start = source.span(node)[0]
    for item in ast.walk(function):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and source.span(item)[0] < start:
            names.add(item.id)
    return names


def python_value_names(source: SourceFile, node: ast.AST) -> set[str]:
    """The names in the function of a node that are Python numbers or strings, judged by annotations and constants."""
    function = function_of(source, node)
    if function is None:
        return set()
    arguments = function.args
    both = [*arguments.posonlyargs, *arguments.args]
    defaults = [*zip(reversed(both), reversed(arguments.defaults), strict=False)]
    defaults += [(item, default) for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default]
    names = {item.arg for item, default in defaults if isinstance(default, ast.Constant) and default.value is not None}
    plain = ("int", "float", "bool", "str")
    names |= {item.arg for item in (*both, *arguments.kwonlyargs) if last_name(item.annotation or item) in plain}
    values: dict[str, list[ast.expr]] = {}
    for item in ast.walk(function):
        if isinstance(item, ast.Assign):
            targets = [part for target in item.targets for part in getattr(target, "elts", [target])]
            for name in (part.id for part in targets if isinstance(part, ast.Name)):
                values.setdefault(name, []).append(item.value)
    return names | {name for name, assigned in values.items() if all(is_plainly_python(value) for value in assigned)}


def read_outside(source: SourceFile, node: ast.stmt, name: str) -> bool:
    """Whether the function reads a name anywhere outside a statement."""
    function = function_of(source, node)
    inside = set(ast.walk(node))
    return function is not None and any(
        isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Load) and item not in inside
        for item in ast.walk(function)
    )


def unused_name(source: SourceFile, node: ast.AST, preferred_name: str) -> str:
    """A name similar to the wanted one that the function does not use."""
    function = function_of(source, node)
    used_names = {item.id for item in ast.walk(function or source.tree) if isinstance(item, ast.Name)}
    used_names |= set(parameters(function)) if function is not None else set()
    return next(
        name for name in (preferred_name, *(f"{preferred_name}_{number}" for number in range(2, 100))) if name not in used_names
    )


def statements(site: BreakSite) -> list[ast.stmt]:
    """The statements on the line of a break: one unless there are semicolons."""
    if site.source is None or site.statement is None:
        return []
    parent = site.source.parents.get(site.statement)
    beside = [
        item
        for field in ("body", "orelse", "finalbody")
        for item in getattr(parent, field, None) or []
        if isinstance(item, ast.stmt) and item.lineno <= site.line <= (item.end_lineno or item.lineno)
    ]
    return [item for item in beside if not hasattr(item, "body")] or [site.statement]


def deciding_statement(site: BreakSite) -> ast.stmt | None:
    """The statement that decides on the line: the one on the line, or the `if` or `while` whose body is on the same line."""
    source, statement = site.source, site.statement
    parent = None if source is None or statement is None else source.parents.get(statement)
    if isinstance(parent, (ast.If, ast.While)) and statement in parent.body and parent.test.end_lineno == site.line:
        return parent
    return statement


def lost_comments(source: SourceFile, first: ast.AST, last: ast.AST, new: str) -> list[str]:
    """The comments from one node to another that the new text lacks."""
    start, end = source.span(first)[0], source.span(last)[1]
    lines = [line.rstrip() for line in new.split("\n")]
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    comments = [item.string.rstrip() for item in tokens if item.type == tokenize.COMMENT and start <= item.start < end]
    return [comment for comment in comments if not any(line.endswith(comment) for line in lines)]
