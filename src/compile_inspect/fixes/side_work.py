"""Work beside the tensors (measuring time, writing files), and how to do it only where nothing is compiled."""

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
_PLAIN = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_side_call(source: SourceFile, node: ast.AST) -> bool:
    """Whether a node calls something that has to do with the world rather than with tensors.

    >>> source = SourceFile("f.py", "import time\\ntime.perf_counter()\\n")
    >>> is_side_call(source, source.calls_at(2)[0])
    True
    """
    if not isinstance(node, ast.Call):
        return False
    name = full_name(source, node.func)
    module = name.partition(".")[0] in _MODULES and is_imported(source, node.func)
    return module or (name in _FUNCTIONS and ("." not in name or is_imported(source, node.func)))


def belonging(source: SourceFile, statement: ast.stmt, function: _Function) -> list[ast.stmt] | None:
    """The statements that can only be left out together: what a side work needs, and what is made of its results.

    None where some of it is returned, decides about something, or may be read elsewhere.
    """
    every = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    chosen = [statement]
    if not isinstance(statement, (*_PLAIN, ast.With)) or (isinstance(statement, ast.With) and _leaves(statement)):
        return None
    inside = {part for item in chosen for part in ast.walk(item)}
    grown = True
    while grown:
        grown = False
        stored, loaded = _names(inside, ast.Store), _names(inside, ast.Load)
        for other in every:
            if other in inside:
                continue
            heads = set(source.head(other))
            reads = bool((_names(heads, ast.Load) | _names(heads, ast.Del)) & stored)
            feeds = any(is_side_call(source, node) for node in heads) and bool(_names(heads, ast.Store) & loaded)
            if reads and not isinstance(other, _PLAIN):
                return None
            if reads or (feeds and isinstance(other, _PLAIN)):
                chosen.append(other)
                inside |= set(ast.walk(other))
                grown = True
    shared = {name for node in every if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    waits = any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in inside)
    if waits or shared & _names(inside, ast.Store):
        return None
    return sorted(chosen, key=lambda item: item.lineno) if _unread(source, function, chosen, inside) else None


def _leaves(statement: ast.With) -> bool:
    """Whether the block does more than assign and call."""
    return any(isinstance(node, ast.stmt) and not isinstance(node, (*_PLAIN, ast.With)) for node in ast.walk(statement))


def _names(nodes: set[ast.AST], context: type[ast.expr_context]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _unread(source: SourceFile, function: _Function, chosen: list[ast.stmt], inside: set[ast.AST]) -> bool:
    """Whether nothing outside reads what the statements store in objects, or changes of objects that they make."""
    outside = {node for node in ast.walk(source.tree) if node not in inside}
    attributes = {node.attr for node in outside if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    own = {node for node in ast.walk(function) if node not in inside}
    local = _names(own, ast.Store)
    for item in chosen:
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


def guarded(source: SourceFile, statements: list[ast.stmt]) -> list[Replacement] | None:
    """Put statements under a condition that is false while something is compiled; None where they share lines with others."""
    groups: list[list[ast.stmt]] = []
    for item in statements:
        body = _siblings(source, item)
        if groups and body.index(item) > 0 and body[body.index(item) - 1] is groups[-1][-1]:
            groups[-1].append(item)
        else:
            groups.append([item])
    changes = []
    for group in groups:
        change = _guard(source, group)
        if change is None:
            return None
        changes.append(change)
    return changes


def _siblings(source: SourceFile, statement: ast.stmt) -> list[ast.stmt]:
    parent = source.parents[statement]
    bodies = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    return next((body for body in bodies if isinstance(body, list) and statement in body), [statement])


def _guard(source: SourceFile, group: list[ast.stmt]) -> Replacement | None:
    (line, column), (end_line, end_column) = source.span(group[0])[0], source.span(group[-1])[1]
    before, after = source.lines[line - 1][:column], source.lines[end_line - 1][end_column:].strip()
    # Text over several lines would be changed by indenting it.
    long = [node for item in group for node in ast.walk(item) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    shared = before.strip() or (after and not after.startswith("#")) or any(node.end_lineno != node.lineno for node in long)
    beginnings = [item.lineno for item in group]
    if shared or len(set(beginnings)) != len(beginnings):
        return None
    old = source.between((line, column), (end_line, end_column))
    first, *others = old.split("\n")
    lines = [before + source.step + first, *(source.step + text if text.strip() else text for text in others)]
    new = "\n".join(["if not torch.compiler.is_compiling():", *lines]).replace("\r", "").replace("\n", source.newline)
    return checked(source, Replacement(source.file, (line, column), (end_line, end_column), old, new))
