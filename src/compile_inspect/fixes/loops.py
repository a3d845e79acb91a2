"""Loops whose number of turns depends on what is in a tensor."""

from __future__ import annotations

import ast

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.choices import Branch, branch_of, indented
from compile_inspect.fixes.scopes import (
    Function,
    bound_before,
    decision,
    lost_comments,
    names,
    plain_names,
    read_outside,
    unused,
)
from compile_inspect.fixes.selection import is_view, value_text
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import Writer, conversion, conversions, in_one_line
from compile_inspect.records.fixes import Proposal, Replacement

_IMPORT = "from torch._higher_order_ops import while_loop"
_PROTOTYPE = "The loop is torch's own; counters that it changes are tensors afterwards. torch calls while_loop a prototype."
_STEADY = "All that the loop changes are tensors that keep their shapes and types from turn to turn."
_MASKED = "All turns are computed, also those after the one that was the last; they have no effect on the results."
_FEW = "The most turns there can be are not many more than are needed."


class Loops(Fixer):
    """Loops that Python ends by what is in a tensor."""

    name = "loops"

    def concerns(self, place: Place) -> bool:
        """Whether a tensor decides there how often something is repeated."""
        if not place.says("Data-dependent", "generic_jump", "Data dependent operator", "Tensor.item()", "_local_scalar_dense"):
            return False
        statement = decision(place)
        if isinstance(statement, ast.For):
            return _limit(statement) is not None
        return isinstance(statement, ast.While) or _loop_left(place) is not None

    def why(self, place: Place) -> str:
        """The reason."""
        return (
            "A tensor decides how often the loop runs, but while the function is compiled no tensor has a value yet. A graph "
            "has a fixed number of operations, so Python runs the loop and asks after every turn, between graphs or without."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """A loop inside the graph, or all turns with no effect after the last one."""
        source, statement = place.source, decision(place)
        if source is None:
            return []
        if isinstance(statement, ast.While):
            return self._looped(source, _while(source, statement))
        if isinstance(statement, ast.For):
            return self._looped(source, _counted(source, statement))
        loop = _loop_left(place)
        if isinstance(statement, ast.If) and isinstance(loop, ast.For):
            replacements = _masked(source, loop, statement)
            if replacements is not None:
                return [
                    self.rewrite("Take all turns, without effect after the last", *replacements, changes=_MASKED, where=_FEW)
                ]
        return []

    def _looped(self, source: SourceFile, replacement: Replacement | None) -> list[Proposal]:
        if replacement is None:
            return []
        replacements = [replacement, source.insert_import(_IMPORT), Writer(source).import_torch()]
        return [self.rewrite("Loop with while_loop", *replacements, changes=_PROTOTYPE, where=_STEADY)]

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        return (
            "Run a fixed number of turns and let torch.where(done, old, new) keep the results once a tensor `done` is true.",
            "torch._higher_order_ops.while_loop(condition, body, tensors) loops inside the graph; the tensors must keep their "
            "shapes and types, and nothing may be changed in place or appended to a list.",
            "Compile what is done in one turn, and leave the loop outside: the turns then share one graph without breaks.",
            "torch.compiler.disable on the function with the loop says that it is meant to run in eager mode.",
        )


def _limit(loop: ast.For) -> ast.expr | None:
    """The number of turns of a loop over `range`, where it is made of a tensor."""
    call = loop.iter
    if isinstance(call, ast.Call) and dotted(call.func) == "range" and len(call.args) == 1 and conversions(call):
        return call.args[0]
    return None


def _loop_left(place: Place) -> ast.For | ast.While | None:
    """The loop that an `if` on the line can leave or go on with early."""
    source, statement = place.source, decision(place)
    if source is None or not isinstance(statement, ast.If):
        return None
    leaves = any(isinstance(item, (ast.Break, ast.Continue, ast.Return)) for part in statement.body for item in ast.walk(part))
    for above in source.above(statement):
        if isinstance(above, (ast.For, ast.While)):
            return above if leaves else None
        if isinstance(above, Function):
            return None
    return None


def _carried(source: SourceFile, loop: ast.For | ast.While, body: Branch) -> list[str] | None:
    """The names that go from turn to turn; None where one of them may not be there before the first."""
    before = bound_before(source, loop)
    if any(name not in before and read_outside(source, loop, name) for name in body):
        return None
    return [name for name in body if name in before]


def _turn(source: SourceFile, body: Branch, carried: list[str]) -> tuple[list[str], list[str]]:
    """The statements of one turn, and what it results in; no result may be something that was given."""
    writer = Writer(source)
    lines = [f"{name} = {in_one_line(value_text(writer, name, value))}" for name, value in body.items()]
    return lines, [f"{name}.clone()" if is_view(body[name]) else name for name in carried]


def _while(source: SourceFile, loop: ast.While) -> Replacement | None:
    body = branch_of(loop.body)
    condition = Writer(source).truth(loop.test)
    carried = None if not body or condition is None or loop.orelse else _carried(source, loop, body)
    if not body or not carried:
        return None
    lines, results = _turn(source, body, carried)
    plain = plain_names(source, loop)
    torch = Writer(source).torch
    given = [f"{torch}.tensor({name})" if name in plain else name for name in carried]
    going, turn = unused(source, loop, "goes_on"), unused(source, loop, "turn")
    step, listed = source.step, ", ".join(carried)
    return _replaced(
        source,
        loop,
        [
            f"def {going}({listed}):",
            f"{step}return {in_one_line(condition or '')}",
            "",
            f"def {turn}({listed}):",
            *indented([*lines, f"return {_tuple(results)}"], step),
            "",
            f"{listed if len(carried) > 1 else f'({listed},)'} = while_loop({going}, {turn}, {_tuple(given)})",
        ],
    )


def _counted(source: SourceFile, loop: ast.For) -> Replacement | None:
    limit, body, target = _limit(loop), branch_of(loop.body), loop.target
    if limit is None or not body or loop.orelse or not isinstance(target, ast.Name) or target.id in body:
        return None
    carried = _carried(source, loop, body)
    if not carried or read_outside(source, loop, target.id):
        return None
    writer, known = Writer(source), conversion(limit)
    torch, step = writer.torch, source.step
    counter = unused(source, loop, "count") if target.id == "_" else target.id
    whole = known is not None and known.kind == "item" and isinstance(known.tensor, ast.Name)
    bound = "" if known is None or not whole or last_name(known.tensor) in body else last_name(known.tensor)
    lines, results = _turn(source, body, carried)
    turn, hoisted = unused(source, loop, "turn"), bound or unused(source, loop, "turns")
    listed, given = ", ".join([counter, *carried]), _tuple([f"{torch}.zeros_like({hoisted})", *carried])
    return _replaced(
        source,
        loop,
        [
            *([] if bound else [f"{hoisted} = {in_one_line(writer.number(limit, compared=True))}"]),
            f"def {turn}({listed}):",
            *indented([*lines, f"return {_tuple([f'{counter} + 1', *results])}"], step),
            "",
            f"_, {', '.join(carried)} = while_loop(lambda {listed}: {counter} < {hoisted}, {turn}, {given})",
        ],
    )


def _replaced(source: SourceFile, statement: ast.stmt, lines: list[str]) -> Replacement:
    """New lines for a statement, with the comments that they do not have above them."""
    comments = lost_comments(source, statement, statement, "\n".join(lines))
    return source.replace_range(statement, statement, [*comments, *lines])


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _masked(source: SourceFile, loop: ast.For, leaving: ast.If) -> list[Replacement | None] | None:
    """All turns of a loop that an `if` left, with assignments that have no effect once it would have."""
    writer = Writer(source)
    condition = writer.truth(leaving.test)
    stays = loop.orelse or leaving.orelse or leaving not in loop.body or len(leaving.body) != 1
    # The turn it was left at is not known any more.
    stays = stays or any(read_outside(source, loop, name) for name in names(loop.target, ast.Store))
    if stays or condition is None or not isinstance(leaving.body[0], ast.Break):
        return None
    done, before = unused(source, loop, "done"), bound_before(source, loop)
    found: list[Replacement | None] = []
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
        kept = f"{writer.torch}.where({done}, {name}, {value_text(writer, name, value[name])})"
        if isinstance(statement, ast.AugAssign):
            found.append(source.replace(statement, f"{name} = {kept}"))
        elif isinstance(statement, ast.Assign):
            found.append(source.replace(statement.value, kept))
    if not first or first in plain_names(source, loop):
        return None
    found.append(_replaced(source, leaving, [f"{done} = {done} | ({condition})"]))
    start = f"{done} = {writer.torch}.zeros((), dtype={writer.torch}.bool, device={first}.device)"
    return [source.insert_before(loop, [start]), *found, writer.import_torch()]


def _read_first(loop: ast.For, name: str) -> bool:
    """Whether a turn reads a name before it has written it."""
    for statement in loop.body:
        if name in names(statement) or (isinstance(statement, ast.AugAssign) and name in names(statement, ast.Store)):
            return True
        if name in names(statement, ast.Store):
            return False
    return False
