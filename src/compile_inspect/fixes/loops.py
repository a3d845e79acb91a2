"""Loops whose number of iterations depends on the values of a tensor."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import BreakSite, Fixer, dotted, last_name
from compile_inspect.fixes.branch_choices import Branch, branch_of, indented
from compile_inspect.fixes.choice_rewrites import is_view, value_text
from compile_inspect.fixes.scopes import (
    Function,
    deciding_statement,
    lost_comments,
    names,
    names_bound_before,
    python_value_names,
    read_outside,
    unused_name,
)
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import ExpressionWriter, conversion, conversions, parenthesize_lines
from compile_inspect.records.fixes import Proposal, Replacement

_IMPORT = "from torch._higher_order_ops import while_loop"
_PROTOTYPE_NOTE = (
    "The loop becomes an operation of the graph; counters that it changes are tensors afterward. torch calls while_loop a "
    "prototype."
)
_WHILE_LOOP_CONDITION = "The loop changes only tensors, and their shapes and dtypes stay the same in every iteration."
_MASK_NOTE = "All iterations are computed, including those after the loop would have ended; they have no effect on the results."
_MASK_CONDITION = "The maximum number of iterations is not much larger than the number needed."


class Loops(Fixer):
    """Loops that end depending on the values of a tensor."""

    name = "loops"

    def matches(self, site: BreakSite) -> bool:
        """Whether a tensor decides on the line how often a loop runs."""
        if not site.mentions(
            "Data-dependent", "generic_jump", "Data dependent operator", "Tensor.item()", "_local_scalar_dense"
        ):
            return False
        statement = deciding_statement(site)
        if isinstance(statement, ast.For):
            return _iteration_count(statement) is not None
        return isinstance(statement, ast.While) or _loop_with_exit(site) is not None

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        return (
            "A tensor decides how often the loop runs, but tensors have no values while the function is compiled. A graph "
            "has a fixed number of operations, so Python runs the loop and tests the condition after every iteration."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Put the loop inside the graph, or run all iterations without effect after the last one."""
        source, statement = site.source, deciding_statement(site)
        if source is None:
            return []
        if isinstance(statement, ast.While):
            return self._use_while_loop(source, _rewrite_while(source, statement))
        if isinstance(statement, ast.For):
            return self._use_while_loop(source, _rewrite_for(source, statement))
        loop = _loop_with_exit(site)
        if isinstance(statement, ast.If) and isinstance(loop, ast.For):
            replacements = _rewrite_with_mask(source, loop, statement)
            if replacements is not None:
                return [
                    self.rewrite(
                        "Run all iterations, without effect after the last",
                        *replacements,
                        changes=_MASK_NOTE,
                        where=_MASK_CONDITION,
                    )
                ]
        return []

    def _use_while_loop(self, source: SourceFile, replacement: Replacement | None) -> list[Proposal]:
        if replacement is None:
            return []
        replacements = [replacement, source.insert_import(_IMPORT), ExpressionWriter(source).import_torch()]
        return [self.rewrite("Loop with while_loop", *replacements, changes=_PROTOTYPE_NOTE, where=_WHILE_LOOP_CONDITION)]

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        return (
            "Run a fixed number of iterations and use torch.where(done, old, new) to freeze the results once a tensor `done` "
            "is true.",
            "torch._higher_order_ops.while_loop(condition, body, tensors) loops inside the graph; shapes and dtypes of the "
            "tensors must not change, and the body must not change anything in place or append to a list.",
            "Compile the body of the loop and leave the loop outside: all iterations then share one graph without breaks.",
            "torch.compiler.disable on the function with the loop makes explicit that it runs in eager mode.",
        )


def _iteration_count(loop: ast.For) -> ast.expr | None:
    """The number of iterations of a loop over `range`, if it comes from a tensor."""
    call = loop.iter
    if isinstance(call, ast.Call) and dotted(call.func) == "range" and len(call.args) == 1 and conversions(call):
        return call.args[0]
    return None


def _loop_with_exit(site: BreakSite) -> ast.For | ast.While | None:
    """The loop that an `if` on the line can break out of or continue early."""
    source, statement = site.source, deciding_statement(site)
    if source is None or not isinstance(statement, ast.If):
        return None
    exits = any(isinstance(item, (ast.Break, ast.Continue, ast.Return)) for part in statement.body for item in ast.walk(part))
    for above in source.ancestors(statement):
        if isinstance(above, (ast.For, ast.While)):
            return above if exits else None
        if isinstance(above, Function):
            return None
    return None


def _carried_names(source: SourceFile, loop: ast.For | ast.While, body: Branch) -> list[str] | None:
    """The names carried from one iteration to the next; None if one may be undefined before the first iteration."""
    before = names_bound_before(source, loop)
    if any(name not in before and read_outside(source, loop, name) for name in body):
        return None
    return [name for name in body if name in before]


def _body_lines(source: SourceFile, body: Branch, carried: list[str]) -> tuple[list[str], list[str]]:
    """The statements of one iteration, and its results; no result may be an input itself."""
    writer = ExpressionWriter(source)
    lines = [f"{name} = {parenthesize_lines(value_text(writer, name, value))}" for name, value in body.items()]
    return lines, [f"{name}.clone()" if is_view(body[name]) else name for name in carried]


def _rewrite_while(source: SourceFile, loop: ast.While) -> Replacement | None:
    body = branch_of(loop.body)
    condition = ExpressionWriter(source).truth(loop.test)
    carried = None if not body or condition is None or loop.orelse else _carried_names(source, loop, body)
    if not body or not carried:
        return None
    lines, results = _body_lines(source, body, carried)
    plain = python_value_names(source, loop)
    torch = ExpressionWriter(source).torch
    arguments = [f"{torch}.tensor({name})" if name in plain else name for name in carried]
    condition_name, body_name = unused_name(source, loop, "loop_condition"), unused_name(source, loop, "loop_body")
    step, listed = source.indent_unit, ", ".join(carried)
    return _replace_statement(
        source,
        loop,
        [
            f"def {condition_name}({listed}):",
            f"{step}return {parenthesize_lines(condition or '')}",
            "",
            f"def {body_name}({listed}):",
            *indented([*lines, f"return {_tuple(results)}"], step),
            "",
            f"{listed if len(carried) > 1 else f'({listed},)'} = while_loop({condition_name}, {body_name}, "
            f"{_tuple(arguments)})",
        ],
    )


def _rewrite_for(source: SourceFile, loop: ast.For) -> Replacement | None:
    limit, body, target = _iteration_count(loop), branch_of(loop.body), loop.target
    if limit is None or not body or loop.orelse or not isinstance(target, ast.Name) or target.id in body:
        return None
    carried = _carried_names(source, loop, body)
    if not carried or read_outside(source, loop, target.id):
        return None
    writer, number = ExpressionWriter(source), conversion(limit)
    torch, step = writer.torch, source.indent_unit
    counter = unused_name(source, loop, "count") if target.id == "_" else target.id
    is_item = number is not None and number.kind == "item" and isinstance(number.tensor, ast.Name)
    bound = "" if number is None or not is_item or last_name(number.tensor) in body else last_name(number.tensor)
    lines, results = _body_lines(source, body, carried)
    body_name, limit_name = unused_name(source, loop, "loop_body"), bound or unused_name(source, loop, "iterations")
    listed, arguments = ", ".join([counter, *carried]), _tuple([f"{torch}.zeros_like({limit_name})", *carried])
    return _replace_statement(
        source,
        loop,
        [
            *([] if bound else [f"{limit_name} = {parenthesize_lines(writer.number(limit, compared=True))}"]),
            f"def {body_name}({listed}):",
            *indented([*lines, f"return {_tuple([f'{counter} + 1', *results])}"], step),
            "",
            f"_, {', '.join(carried)} = while_loop(lambda {listed}: {counter} < {limit_name}, {body_name}, {arguments})",
        ],
    )


def _replace_statement(source: SourceFile, statement: ast.stmt, lines: list[str]) -> Replacement:
    """Replace a statement, with comments that the new lines lack above them."""
    comments = lost_comments(source, statement, statement, "\n".join(lines))
    return source.replace_range(statement, statement, [*comments, *lines])


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _rewrite_with_mask(source: SourceFile, loop: ast.For, leaving: ast.If) -> list[Replacement | None] | None:
    """Run all iterations of a loop with a `break`; assignments have no effect once it would have been reached."""
    writer = ExpressionWriter(source)
    condition = writer.truth(leaving.test)
    unsupported = loop.orelse or leaving.orelse or leaving not in loop.body or len(leaving.body) != 1
    # The iteration at which the loop ended is no longer known.
    unsupported = unsupported or any(read_outside(source, loop, name) for name in names(loop.target, ast.Store))
    if unsupported or condition is None or not isinstance(leaving.body[0], ast.Break):
        return None
    done_name, before = unused_name(source, loop, "done"), names_bound_before(source, loop)
    edits: list[Replacement | None] = []
    first = ""
    for statement in loop.body:
        if statement is leaving:
            continue
        value = branch_of([statement])
        if not value or isinstance(statement, ast.Return):
            return None
        name = next(iter(value))
        if name not in before and not read_outside(source, loop, name) and not _read_first(loop, name):
            continue
        if name not in before:
            return None
        first = first or name
        masked_value = f"{writer.torch}.where({done_name}, {name}, {value_text(writer, name, value[name])})"
        if isinstance(statement, ast.AugAssign):
            edits.append(source.replace(statement, f"{name} = {masked_value}"))
        elif isinstance(statement, ast.Assign):
            edits.append(source.replace(statement.value, masked_value))
    if not first or first in python_value_names(source, loop):
        return None
    edits.append(_replace_statement(source, leaving, [f"{done_name} = {done_name} | ({condition})"]))
    start = f"{done_name} = {writer.torch}.zeros((), dtype={writer.torch}.bool, device={first}.device)"
    return [source.insert_before(loop, [start]), *edits, writer.import_torch()]


def _read_first(loop: ast.For, name: str) -> bool:
    """Whether an iteration reads a name before it writes it."""
    for statement in loop.body:
        if name in names(statement) or (isinstance(statement, ast.AugAssign) and name in names(statement, ast.Store)):
            return True
        if name in names(statement, ast.Store):
            return False
    return False
