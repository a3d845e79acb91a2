"""The values that an `if` chooses between, if its branches only assign names or only return."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from compile_inspect.fixes.base import last_name
from compile_inspect.fixes.scopes import lost_comments, names_bound_before, read_outside
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import is_plainly_python, is_truth
from compile_inspect.records.fixes import Replacement

_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_NON_TENSOR_NODES = (
    ast.Dict, ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.Lambda, ast.List, ast.ListComp, ast.NamedExpr, ast.Set,
    ast.SetComp, ast.Starred, ast.Tuple, ast.Yield, ast.YieldFrom, ast.Await,
)  # fmt: skip


@dataclass(frozen=True)
class Value:
    """What a branch assigns to a name: the expression, and the operator of an augmented assignment."""

    node: ast.expr
    sign: str = ""


Branch = dict[str, Value]


@dataclass(frozen=True)
class Choice:
    """Branches with their conditions, and the values if no condition is true."""

    source: SourceFile
    first: ast.If
    last: ast.stmt
    guards: list[ast.expr]
    """Conditions on Python objects that precede the condition on tensors."""
    tests: list[ast.expr]
    branches: list[Branch]
    """One more than tests. A returned value has the name `return`; the items of a returned tuple `return 0`, `return 1`, …"""

    @classmethod
    def of(cls, source: SourceFile, statement: ast.If) -> Choice | None:
        """The choice that an `if` makes; None if its branches do anything other than assign or return values."""
        tests, bodies, node = [statement.test], [statement.body], statement
        while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and is_elif(source, node.orelse[0]):
            node = node.orelse[0]
            tests.append(node.test)
            bodies.append(node.body)
        next_statement = _next_statement(source, statement)
        last: ast.stmt = statement
        otherwise = node.orelse
        if not otherwise and isinstance(bodies[0][-1], ast.Return) and isinstance(next_statement, ast.Return):
            otherwise, last = [next_statement], next_statement
        branches = [branch_of(body) for body in (*bodies, otherwise)]
        complete = [branch for branch in branches if branch is not None]
        if len(complete) < len(branches) or not complete[0]:
            return None
        return_names = [[name for name in branch if name.startswith("return")] for branch in complete]
        if any(item != return_names[0] for item in return_names) or (
            return_names[0] and any(return_names[0] != list(item) for item in complete)
        ):
            return None
        guards, tests[0] = _split(tests[0]) if not otherwise and len(tests) == 1 else ([], tests[0])
        return cls(source, statement, last, guards, tests, complete)

    @property
    def returns(self) -> bool:
        """Whether the branches return."""
        return next(iter(self.branches[0])).startswith("return")

    def names(self) -> list[str] | None:
        """The assigned names in an order that is valid for all branches; None if there is no such order."""
        merged: list[str] = []
        for branch in self.branches:
            pending, right = merged, list(branch)
            merged = []
            while pending or right:
                if pending and (pending[0] not in right or pending[0] == right[0]):
                    right = right[1:] if right and pending[0] == right[0] else right
                    merged.append(pending.pop(0))
                elif right and right[0] not in pending:
                    merged.append(right.pop(0))
                else:
                    return None
        return merged

    def live_names(self) -> list[str]:
        """The names whose values are used after the `if`."""
        before = names_bound_before(self.source, self.first)
        names = self.names() or []
        return [name for name in names if name in before or read_outside(self.source, self.first, name)]

    def replacements(self, lines: Sequence[str], *imported: Replacement | None) -> list[Replacement | None]:
        """Replace the `if` (and the return after it) with these lines."""
        comments = lost_comments(self.source, self.first, self.last, "\n".join(lines))
        lines, step = [*comments, *lines], self.source.indent_unit
        if self.guards:
            head = " and ".join(_operand(self.source, item) for item in self.guards)
            lines = [f"if {head}:", *indented(lines, step)]
        if is_elif(self.source, self.first):
            lines = ["else:", *indented(lines, step)]
        return [self.source.replace_range(self.first, self.last, lines), *imported]


def indented(lines: Sequence[str], step: str) -> list[str]:
    """Indent lines by one level; empty lines stay empty."""
    return [f"{step}{line}" if line else "" for line in lines]


def is_elif(source: SourceFile, statement: ast.If) -> bool:
    """Whether an `if` is written as `elif`."""
    line, column = source.span(statement)[0]
    return source.lines[line - 1][column:].startswith("elif")


def _next_statement(source: SourceFile, statement: ast.stmt) -> ast.stmt | None:
    """The statement after one, in the same block."""
    parent = source.parents.get(statement)
    if isinstance(statement, ast.If) and is_elif(source, statement):
        return None
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None) or []
        if statement in block and statement is not block[-1]:
            after: ast.stmt = block[block.index(statement) + 1]
            return after
    return None


def branch_of(body: list[ast.stmt]) -> Branch | None:
    """The values that a branch assigns; None if it does anything else, or assigns a name twice."""
    branch: Branch = {}
    for statement in body:
        if isinstance(statement, ast.Return) and len(body) == 1 and statement.value is not None:
            is_tuple = isinstance(statement.value, ast.Tuple) and len(statement.value.elts) > 1
            parts = statement.value.elts if is_tuple else [statement.value]  # type: ignore[attr-defined]
            pairs = [(f"return {index}" if is_tuple else "return", Value(part)) for index, part in enumerate(parts)]
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            pairs = [(statement.targets[0].id, Value(statement.value))]
        elif (
            isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and type(statement.op) in _OPERATORS
        ):
            pairs = [(statement.target.id, Value(statement.value, _OPERATORS[type(statement.op)]))]
        elif isinstance(statement, ast.Pass):
            continue
        else:
            return None
        for name, value in pairs:
            constant = value.node.value if isinstance(value.node, ast.Constant) else 0
            not_a_tensor = isinstance(value.node, _NON_TENSOR_NODES) or not isinstance(constant, (bool, int, float))
            if name in branch or not_a_tensor or _changes_in_place(value.node):
                return None
            branch[name] = value
    return branch


def _changes_in_place(node: ast.expr) -> bool:
    """Whether an expression calls a method such as `add_`, which must not run if the other branch is taken."""
    called = [last_name(item.func) for item in ast.walk(node) if isinstance(item, ast.Call)]
    return any(name.endswith("_") and not name.startswith("_") for name in called)


def _split(test: ast.expr) -> tuple[list[ast.expr], ast.expr]:
    """The leading parts of an `and` that test Python objects, and the rest."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return [], test
    count = 0
    while count < len(test.values) and (is_plainly_python(test.values[count]) or not is_truth(test.values[count])):
        count += 1
    if count in (0, len(test.values)):
        return [], test
    rest = test.values[count:]
    if len(rest) == 1:
        return test.values[:count], rest[0]
    remainder = ast.BoolOp(test.op, rest)
    remainder.lineno, remainder.col_offset = rest[0].lineno, rest[0].col_offset
    remainder.end_lineno, remainder.end_col_offset = test.end_lineno, test.end_col_offset
    return test.values[:count], remainder


def _operand(source: SourceFile, node: ast.expr) -> str:
    text = source.segment(node)
    return f"({text})" if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda)) or "\n" in text else text
