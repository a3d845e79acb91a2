"""Side effects outside of tensors (measuring time, writing files), and how to limit them to eager mode."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import dotted
from compile_inspect.fixes.expressions import checked, full_name, is_imported
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

_MODULES = {
    "time",
    "datetime",
    "gc",
    "json",
    "pickle",
    "uuid",
    "hashlib",
    "traceback",
    "socket",
    "resource",
    "tracemalloc",
    "psutil",
}
_FUNCTIONS = {
    "open",
    "str",
    "repr",
    "torch.save",
    "sys.getsizeof",
    "os.getpid",
    "os.makedirs",
    "inspect.stack",
    "inspect.currentframe",
    "warnings.simplefilter",
    "warnings.filterwarnings",
    "torch.cuda.memory_allocated",
    "torch.cuda.max_memory_allocated",
    "torch.cuda.synchronize",
}
_SIMPLE_STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_side_effect(source: SourceFile, node: ast.AST) -> bool:
    """Whether a node calls a function with an effect outside of tensors, such as reading a clock or a file.

    >>> source = SourceFile("f.py", "import time\\ntime.perf_counter()\\n")
    >>> has_side_effect(source, source.calls_at(2)[0])
    True
    """
    if not isinstance(node, ast.Call):
        return False
    name = full_name(source, node.func)
    module = name.partition(".")[0] in _MODULES and is_imported(source, node.func)
    return module or (name in _FUNCTIONS and ("." not in name or is_imported(source, node.func)))


def dependent_statements(source: SourceFile, statement: ast.stmt, function: _Function) -> list[ast.stmt] | None:
    """The statements that must be skipped together: those a side effect needs, and those that use its results.

    None if a result is returned, is used in a condition, or may be read elsewhere.
    """
    all_statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    group = [statement]
    if not isinstance(statement, (*_SIMPLE_STATEMENTS, ast.With)) or (
        isinstance(statement, ast.With) and _does_more_than_assign(statement)
    ):
        return None
    inside = {part for item in group for part in ast.walk(item)}
    changed = True
    while changed:
        changed = False
        stored, loaded = _names(inside, ast.Store), _names(inside, ast.Load)
        for other in all_statements:
            if other in inside:
                continue
            heads = set(source.head(other))
            reads = bool((_names(heads, ast.Load) | _names(heads, ast.Del)) & stored)
            feeds = any(has_side_effect(source, node) for node in heads) and bool(_names(heads, ast.Store) & loaded)
            if reads and not isinstance(other, _SIMPLE_STATEMENTS):
                return None
            if reads or (feeds and isinstance(other, _SIMPLE_STATEMENTS)):
                group.append(other)
                inside |= set(ast.walk(other))
                changed = True
    shared = {name for node in all_statements if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    suspends = any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in inside)
    if suspends or shared & _names(inside, ast.Store):
        return None
    return sorted(group, key=lambda item: item.lineno) if _is_unread(source, function, group, inside) else None


def _does_more_than_assign(statement: ast.With) -> bool:
    """Whether the block does anything other than assign and call."""
    return any(
        isinstance(node, ast.stmt) and not isinstance(node, (*_SIMPLE_STATEMENTS, ast.With)) for node in ast.walk(statement)
    )


def _names(nodes: set[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _is_unread(source: SourceFile, function: _Function, group: list[ast.stmt], inside: set[ast.AST]) -> bool:
    """Whether no other statement reads what these statements store in objects or how they change objects."""
    outside = {node for node in ast.walk(source.tree) if node not in inside}
    attributes = {node.attr for node in outside if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    own = {node for node in ast.walk(function) if node not in inside}
    local = _names(own, ast.Store)
    for item in group:
        targets = getattr(item, "targets", None) or [getattr(item, "target", None)]
        for target in targets:
            holder = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(holder, ast.Attribute) and holder.attr in attributes:
                return False
            if isinstance(target, ast.Subscript) and not isinstance(holder, ast.Attribute):
                return False
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            root = dotted(item.value.func).partition(".")[0]
            if root in local and root in _names(own, ast.Load):
                return False
    return True


def guard_statements(source: SourceFile, statements: list[ast.stmt]) -> list[Replacement] | None:
    """Put statements under a condition that is false during compilation; None if they share lines with others."""
    groups: list[list[ast.stmt]] = []
    for item in statements:
        body = _siblings(source, item)
        if groups and body.index(item) > 0 and body[body.index(item) - 1] is groups[-1][-1]:
            groups[-1].append(item)
        else:
            groups.append([item])
    changes = []
    for group in groups:
        change = _guard_group(source, group)
        if change is None:
            return None
        changes.append(change)
    return changes


def _siblings(source: SourceFile, statement: ast.stmt) -> list[ast.stmt]:
    parent = source.parents[statement]
    bodies = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    return next((body for body in bodies if isinstance(body, list) and statement in body), [statement])


def _guard_group(source: SourceFile, group: list[ast.stmt]) -> Replacement | None:
    (line, column), (end_line, end_column) = source.span(group[0])[0], source.span(group[-1])[1]
    before, after = source.lines[line - 1][:column], source.lines[end_line - 1][end_column:].strip()
    # Indenting would change a multi-line string.
    texts = [node for item in group for node in ast.walk(item) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    shared = before.strip() or (after and not after.startswith("#")) or any(node.end_lineno != node.lineno for node in texts)
    beginnings = [item.lineno for item in group]
    if shared or len(set(beginnings)) != len(beginnings):
        return None
    old = source.between((line, column), (end_line, end_column))
    first, *others = old.split("\n")
    lines = [before + source.indent_unit + first, *(source.indent_unit + text if text.strip() else text for text in others)]
    new = "\n".join(["if not torch.compiler.is_compiling():", *lines]).replace("\r", "").replace("\n", source.newline)
    return checked(source, Replacement(source.file, (line, column), (end_line, end_column), old, new))
