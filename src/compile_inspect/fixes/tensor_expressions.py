"""Rewrite expressions for code in which a tensor replaces a Python number or a truth value."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from compile_inspect.fixes.base import dotted, last_name
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Replacement

Template = Sequence[str | ast.expr]
"""Text that contains expressions of the source; these are expanded in turn."""

_ATOMIC_NODES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_PYTHON_CALLS = ("isinstance", "hasattr", "callable", "len", "getattr", "dim", "size", "numel", "is_compiling", "type")
_PYTHON_ATTRIBUTES = ("shape", "ndim", "training", "dtype", "device", "requires_grad", "is_cuda")
_INTEGERS = ("argmax", "argmin", "count_nonzero", "long", "int", "bincount")
_BOOLEANS = (
    "any", "all", "isnan", "isinf", "isfinite", "isclose", "logical_and", "logical_or", "logical_not", "logical_xor",
    "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip


@dataclass(frozen=True)
class Conversion:
    """A call that converts a tensor to a Python number or a list of numbers."""

    call: ast.Call
    tensor: ast.expr
    kind: str
    """`item`, `tolist`, `float`, `int` or `bool`."""


def conversion(node: ast.AST) -> Conversion | None:
    """The node as a conversion, or None. `float(x.item())` is a conversion of `x`; `float(x.shape[0])` is none."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist") and not node.args:
        return Conversion(node, node.func.value, node.func.attr)
    if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool") and len(node.args) == 1:
        inside = node.args[0]
        if isinstance(inside, (ast.Constant, ast.Starred)) or is_plainly_python(inside):
            return None
        inner = conversion(inside)
        tensor = inner.tensor if inner is not None and inner.kind == "item" else inside
        return Conversion(node, tensor, node.func.id)
    return None


def conversions(node: ast.AST) -> list[Conversion]:
    """All conversions in a node, outer ones first; nested conversions belong to the outer one."""
    matches: list[Conversion] = []
    inside: set[ast.AST] = set()
    for child in ast.walk(node):
        match = conversion(child)
        if match is not None and child not in inside:
            matches.append(match)
            inside.update(ast.walk(match.call))
    return matches


def is_plainly_python(node: ast.expr) -> bool:
    """Whether an expression is about Python objects rather than tensor values, judged by its text."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Compare):
        if any(isinstance(item, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for item in node.ops):
            return True
        parts = [item for item in (node.left, *node.comparators) if not isinstance(item, ast.Constant)]
        return all(is_plainly_python(item) for item in parts)
    if isinstance(node, ast.UnaryOp):
        return is_plainly_python(node.operand)
    if isinstance(node, (ast.BoolOp, ast.BinOp)):
        parts = node.values if isinstance(node, ast.BoolOp) else [node.left, node.right]
        return all(is_plainly_python(item) for item in parts)
    if isinstance(node, ast.Subscript):
        return is_plainly_python(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in _PYTHON_ATTRIBUTES or dotted(node).startswith("torch.")
    return isinstance(node, ast.Call) and last_name(node.func) in _PYTHON_CALLS


def is_truth(node: ast.expr) -> bool:
    """Whether an expression is a truth value (or a boolean tensor), regardless of the types of its parts."""
    if isinstance(node, ast.Compare):
        return all(isinstance(item, _COMPARISONS) for item in node.ops)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return True
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return is_truth(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return is_truth(node.left) and is_truth(node.right)
    if isinstance(node, ast.BoolOp):
        return all(is_truth(item) for item in node.values)
    match = conversion(node)
    if match is not None and match.kind in ("item", "bool"):
        return match.kind == "bool" or is_truth(match.tensor)
    return isinstance(node, ast.Call) and last_name(node.func) in (*_BOOLEANS, "allclose", "equal", "is_nonzero")


class ExpressionWriter:
    """Writes expressions of a file with some of their parts replaced. `truths` are names of boolean tensors."""

    def __init__(self, source: SourceFile, truths: Collection[str] = ()) -> None:
        self.source, self.truths = source, truths
        self.templates: dict[ast.AST, Template] = {}
        self.torch = source.module_alias("torch") or "torch"

    def import_torch(self) -> Replacement | None:
        """The import that the new text needs; None if the file has it already."""
        return self.source.insert_import("import torch") if self.source.module_alias("torch") is None else None

    def text_of(self, node: ast.AST) -> str:
        """The text of a node, with its templates expanded."""
        template = self.templates.get(node)
        if template is not None:
            return "".join(part if isinstance(part, str) else self.text_of(part) for part in template)
        changed = sorted(self._outermost_templates(node), key=lambda item: self.source.span(item))
        (position, end), text = self.source.span(node), ""
        for item in changed:
            start, stop = self.source.span(item)
            text += self.source.between(position, start) + self.text_of(item)
            position = stop
        return text + self.source.between(position, end)

    def _outermost_templates(self, node: ast.AST) -> Iterator[ast.AST]:
        """The outermost nodes inside a node that have a template."""
        for child in ast.iter_child_nodes(node):
            if child in self.templates:
                yield child
            else:
                yield from self._outermost_templates(child)

    def atom(self, node: ast.expr) -> str:
        """The text of a node, in parentheses unless it is atomic."""
        text = self.text_of(node)
        return text if isinstance(node, _ATOMIC_NODES) and node not in self.templates else f"({text})"

    def operand(self, match: Conversion, *, after: str = "") -> Template:
        """The tensor of a conversion in place of the number; `after` is appended unless the tensor has integers."""
        if match.kind == "int":  # an integer tensor has no gradient
            after = "" if _is_integer(match.tensor) else ".long()"
        if after or not self._needs_no_parentheses(match.call):
            return (self.atom(match.tensor), after)
        return (self.text_of(match.tensor),)

    def _needs_no_parentheses(self, node: ast.expr) -> bool:
        """Whether any expression can replace a node without parentheses."""
        parent = self.source.parents.get(node)
        first, last = (place[0] for place in self.source.span(node))
        return isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.AugAssign)) and first == last

    def number(self, node: ast.expr, *, compared: bool = False) -> str:
        """The text of an expression with tensors in place of the numbers converted from them.

        The tensors are detached, since numbers have no gradient; if they are only `compared`, there is none anyway.
        """
        after = "" if compared else ".detach()"
        before = dict(self.templates)
        for match in conversions(node):
            if match.kind in ("item", "float", "int"):
                self.templates[match.call] = (self.atom(match.tensor), *self.operand(match, after=after)[1:])
        try:
            return self.text_of(node)
        finally:
            self.templates = before

    def truth(self, node: ast.expr) -> str | None:
        """An expression as a boolean tensor; None if there is no safe way to write it."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(item) if is_truth(item) else None for item in node.values]
            if any(isinstance(item, ast.NamedExpr) for item in ast.walk(node)) or None in parts:
                return None
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return sign.join(_as_operand(part) for part in parts if part is not None)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand)
            return None if inner is None else f"{self.torch}.logical_not({inner})"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        match = conversion(node)
        if match is not None and match.kind != "tolist":
            return self.truth(match.tensor)
        if isinstance(node, ast.Call) and not node.keywords and len(node.args) == 2 and last_name(node.func) == "equal":
            return f"({self.atom(node.args[0])} == {self.atom(node.args[1])}).all()"
        if isinstance(node, ast.Call) and dotted(node.func) == f"{self.torch}.allclose":
            rest = self.source.between(self.source.span(node.func)[1], self.source.span(node)[1])
            return f"{self.torch}.isclose{rest}.all()"
        if is_truth(node) or (isinstance(node, ast.Name) and node.id in self.truths):
            return self.text_of(node)
        return f"{self.text_of(node)} != 0" if isinstance(node, _ATOMIC_NODES) and not isinstance(node, ast.Constant) else None

    def _comparison(self, node: ast.Compare) -> str | None:
        if not all(isinstance(item, _COMPARISONS) for item in node.ops):
            return None
        if len(node.ops) == 1:
            return self.number(node, compared=True)
        signs = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
        parts = [node.left, *node.comparators]
        numbers = [self.number(item, compared=True) for item in parts]
        texts = [text if isinstance(item, _ATOMIC_NODES) else f"({text})" for item, text in zip(parts, numbers, strict=True)]
        pairs = zip(texts, [signs[type(item)] for item in node.ops], texts[1:], strict=False)
        return " & ".join(f"({left} {sign} {right})" for left, sign, right in pairs)


def _as_operand(text: str) -> str:
    """The text as an operand of `&`, in parentheses if needed."""
    tree = ast.parse(f"({text})", mode="eval").body
    return text if isinstance(tree, _ATOMIC_NODES) and "\n" not in text else f"({text})"


def _is_integer(node: ast.expr) -> bool:
    """Whether a tensor has an integer dtype, judged by its text."""
    if not isinstance(node, ast.Call):
        return False
    if last_name(node.func) == "sum" and isinstance(node.func, ast.Attribute):
        return is_truth(node.func.value) and not isinstance(node.func.value, ast.Name)
    return last_name(node.func) in _INTEGERS


def parenthesize_lines(text: str) -> str:
    """The text of an expression for the right side of `=`: in parentheses if it has several lines."""
    return f"({text})" if "\n" in text else text
