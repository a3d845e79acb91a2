"""Names in a function: which are read and written where, and what else stands on a line."""

from __future__ import annotations

import ast
import io
import tokenize

from compile_inspect.fixes.base import Place, last_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import is_plainly_python
from compile_inspect.fixes.writing import Function as Function
from compile_inspect.fixes.writing import function_of as function_of


def names(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> list[str]:
    """The names that a node reads (or writes), each once, in the order they stand."""
    found = [item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, context)]
    return list(dict.fromkeys(item.id for item in sorted(found, key=lambda item: (item.lineno, item.col_offset))))


def parameters(function: Function | ast.Lambda) -> list[str]:
    """The names of a function's parameters."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [item.arg for item in every if item is not None]


def bound_before(source: SourceFile, node: ast.stmt) -> set[str]:
    """The local names that are written before a statement in its function, parameters among them."""
    function = function_of(source, node)
    if function is None:
        return set()
    found = set(parameters(function))
    start = source.span(node)[0]
    for item in ast.walk(function):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and source.span(item)[0] < start:
            found.add(item.id)
    return found


def plain_names(source: SourceFile, node: ast.AST) -> set[str]:
    """The names in the function of a node that hold Python numbers or texts, as far as annotations and constants tell."""
    function = function_of(source, node)
    if function is None:
        return set()
    given = function.args
    both = [*given.posonlyargs, *given.args]
    defaults = [*zip(reversed(both), reversed(given.defaults), strict=False)]
    defaults += [(item, default) for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default]
    found = {item.arg for item, default in defaults if isinstance(default, ast.Constant) and default.value is not None}
    plain = ("int", "float", "bool", "str")
    found |= {item.arg for item in (*both, *given.kwonlyargs) if last_name(item.annotation or item) in plain}
    values: dict[str, list[ast.expr]] = {}
    for item in ast.walk(function):
        if isinstance(item, ast.Assign):
            targets = [part for target in item.targets for part in getattr(target, "elts", [target])]
            for name in (part.id for part in targets if isinstance(part, ast.Name)):
                values.setdefault(name, []).append(item.value)
    return found | {name for name, every in values.items() if all(is_plainly_python(value) for value in every)}


def read_outside(source: SourceFile, node: ast.stmt, name: str) -> bool:
    """Whether a name is read in the function anywhere but in a statement."""
    function = function_of(source, node)
    inside = set(ast.walk(node))
    return function is not None and any(
        isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Load) and item not in inside
        for item in ast.walk(function)
    )


def unused(source: SourceFile, node: ast.AST, wanted: str) -> str:
    """A name like the wanted one that the function does not know."""
    function = function_of(source, node)
    taken = {item.id for item in ast.walk(function or source.tree) if isinstance(item, ast.Name)}
    taken |= set(parameters(function)) if function is not None else set()
    return next(name for name in (wanted, *(f"{wanted}_{number}" for number in range(2, 100))) if name not in taken)


def statements(place: Place) -> list[ast.stmt]:
    """The statements on the line of a break: one, unless there are semicolons."""
    if place.source is None or place.statement is None:
        return []
    parent = place.source.parents.get(place.statement)
    beside = [
        item
        for field in ("body", "orelse", "finalbody")
        for item in getattr(parent, field, None) or []
        if isinstance(item, ast.stmt) and item.lineno <= place.line <= (item.end_lineno or item.lineno)
    ]
    return [item for item in beside if not hasattr(item, "body")] or [place.statement]


def decision(place: Place) -> ast.stmt | None:
    """The statement that decides something on the line: that of the line, or the `if` whose body is on the same line."""
    source, statement = place.source, place.statement
    parent = None if source is None or statement is None else source.parents.get(statement)
    if isinstance(parent, (ast.If, ast.While)) and statement in parent.body and parent.test.end_lineno == place.line:
        return parent
    return statement


def lost_comments(source: SourceFile, first: ast.AST, last: ast.AST, new: str) -> list[str]:
    """The comments from one node to another that new text in their place does not have."""
    start, end = source.span(first)[0], source.span(last)[1]
    kept = [line.rstrip() for line in new.split("\n")]
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    found = [item.string.rstrip() for item in tokens if item.type == tokenize.COMMENT and start <= item.start < end]
    return [comment for comment in found if not any(line.endswith(comment) for line in kept)]
