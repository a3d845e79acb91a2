"""Conversions of tensors to Python numbers inside compiled code: `.item()`, `.tolist()`, `float(t)`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from compile_inspect.fixes.base import BreakSite, Fixer, dotted, last_name
from compile_inspect.fixes.scopes import function_of, lost_comments, python_value_names, statements
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import Conversion, ExpressionWriter, Template, conversions, is_plainly_python
from compile_inspect.records.fixes import Proposal, Replacement

_MATH_FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "floor", "ceil", "fabs")
_TENSOR_METHODS = (
    "add", "sub", "mul", "div", "pow", "clamp", "clip", "clamp_min", "clamp_max", "where", "masked_fill", "maximum", "minimum",
    "fmod", "remainder", "lerp", "add_", "sub_", "mul_", "div_", "clamp_", "masked_fill_", "fill_", "eq", "ne", "lt", "le",
    "gt", "ge", "index_select", "true_divide", "floor_divide",
)  # fmt: skip
_DTYPE_NOTE = (
    "The number keeps the dtype of its tensor: results may be rounded differently, integers can overflow, and operations "
    "that raise for a Python number (division by 0, logarithm of 0) return infinity or NaN"
)


class Scalars(Fixer):
    """Tensors that are converted to Python numbers."""

    name = "scalars"

    def matches(self, site: BreakSite) -> bool:
        """Whether the line converts a tensor to a number."""
        if site.mentions("Tensor.item()", "GB0124", "aten._local_scalar_dense", "Tensor.tolist", "capture_scalar_outputs"):
            return True
        return site.mentions("Data dependent operator", "Data-dependent") and bool(_conversions(site))

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        return (
            "The line converts a tensor to a Python number, but tensors have no values while the function is compiled: the "
            "graph ends and runs, Python gets the number, and another graph begins after it. On a GPU, the program also "
            "waits there."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Leave the number in its tensor, or let the graph contain the number."""
        proposals = []
        if site.source is not None and not isinstance(site.statement, (ast.If, ast.While, ast.Assert)):
            # A Python number has no gradient, and a tensor in its place must not have one either.
            detached = _ConversionRewriter(site.source, ".detach()")
            if detached.rewrite(_conversions(site)):
                where = "The number is used only in computations, and the gradient should treat it as a constant, as before."
                title = "Leave the number in its tensor, without a gradient"
                proposals.append(self.rewrite(title, *detached.replacements(), changes=f"{_DTYPE_NOTE}.", where=where))
        proposals.append(
            self.setting(
                "Let graphs contain numbers from tensors",
                "torch._dynamo.config.capture_scalar_outputs = True",
                changes="If the number is a loop count or a size, a different value may cause a recompile.",
                where="The number is needed as a number: as a size or an index, or in what is returned or stored.",
            )
        )
        return proposals

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        return (
            "Keep the value in a tensor while you only compute with it, and call .item() outside the compiled function.",
            "For logged statistics, return x.detach() and convert it to a number where you write the log.",
            "If the number is a size, pass the size to the function as an argument, or pad to a fixed size and mask.",
        )


def _conversions(site: BreakSite) -> list[Conversion]:
    """The conversions in the statements of the line."""
    if site.source is None:
        return []
    matches = []
    for statement in statements(site):
        heads = set(site.source.head(statement))
        matches += [item for item in conversions(statement) if item.call in heads]
    return matches


class _ConversionRewriter:
    """Replaces conversions by the tensors themselves, and adapts the code that uses them."""

    def __init__(self, source: SourceFile, after: str = "") -> None:
        self.source, self.after, self.writer = source, after, ExpressionWriter(source)
        self.changes: dict[ast.AST, Template] = self.writer.templates
        self._visited: set[ast.AST] = set()

    def rewrite(self, items: list[Conversion]) -> bool:
        """Rewrite each conversion that can be rewritten; return whether there was at least one."""
        count = 0
        for item in items:
            before = dict(self.changes)
            if self._rewrite(item):
                count += 1
            else:
                self.changes.clear()
                self.changes.update(before)
        return count > 0 and not any(
            lost_comments(self.source, node, node, self.writer.text_of(node)) for node in self._outer()
        )

    def _rewrite(self, item: Conversion) -> bool:
        if item.kind == "tolist":
            self.changes[item.call] = (self.writer.atom(item.tensor), f"{self.after}.unbind()")
            return self._fits_unpacking(item.call)
        if item.kind == "bool":
            truth = self.writer.truth(item.tensor)
            self.changes[item.call] = (f"({truth})",)
            return truth is not None and self._fits(item.call)
        self.changes[item.call] = self.writer.operand(item, after=self.after)
        return self._fits(item.call)

    def replacements(self) -> list[Replacement | None]:
        """The changes: the outermost ones, which include the inner ones."""
        outer = self._outer()
        imported = self.writer.import_torch() if any(self.writer.torch in self.writer.text_of(node) for node in outer) else None
        return [*[self.source.replace(node, self.writer.text_of(node)) for node in outer], imported]

    def _outer(self) -> list[ast.AST]:
        return [node for node in self.changes if not any(above in self.changes for above in self.source.ancestors(node))]

    def _fits(self, node: ast.expr) -> bool:
        """Whether an expression can be a tensor instead of a number; records the changes that this requires."""
        if node in self._visited:
            return True
        self._visited.add(node)
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = self.source.parents.get(parent)
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, (ast.UAdd, ast.USub)):
            return self._fits(parent)
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is node else parent.left
            return self._fits(parent) if _is_number(other, python_value_names(self.source, node)) else True
        if isinstance(parent, ast.AugAssign):
            return parent.value is node
        if isinstance(parent, ast.Subscript):
            return parent.slice is node and isinstance(parent.ctx, ast.Load) and self._fits_index(node, parent)
        if isinstance(parent, ast.Call):
            return self._fits_call(node, parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is node:
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return len(targets) == 1 and isinstance(targets[0], ast.Name) and self._fits_name(targets[0])
        return False

    def _fits_index(self, node: ast.expr, subscript: ast.Subscript) -> bool:
        # torch converts a zero-dimensional index to a number anyway, but not a one-dimensional index.
        opening, closing = ("(", ")") if isinstance(node, (ast.BinOp, ast.UnaryOp)) else ("", "")
        self.changes[subscript] = (subscript.value, f"[{opening}", node, f"{closing}.reshape(1)].squeeze(0)")
        return True

    def _fits_call(self, node: ast.expr, call: ast.Call) -> bool:
        name, last = dotted(call.func), last_name(call.func)
        if call.func is node:
            return False
        if name in ("max", "min") and len(call.args) == 2 and not call.keywords:
            other = call.args[1] if call.args[0] is node else call.args[0]
            if not isinstance(other, (ast.Constant, ast.Name, ast.Attribute)):
                return False
            bound = "min" if name == "max" else "max"
            self.changes[call] = (f"{self.writer.torch}.clamp(", node, f", {bound}={self.source.segment(other)})")
            return self._fits(call)
        if name.startswith("math.") and last in _MATH_FUNCTIONS and len(call.args) == 1:
            self.changes[call] = (f"{self.writer.torch}.{'abs' if last == 'fabs' else last}(", node, ")")
            return self._fits(call)
        if name == "abs":
            return self._fits(call)
        return isinstance(call.func, ast.Attribute) and last in _TENSOR_METHODS

    def _fits_name(self, name: ast.Name) -> bool:
        """Whether every use of a name can be a tensor; the name must be assigned only once in its function."""
        function = function_of(self.source, name)
        if function is None:
            return False
        uses = [item for item in ast.walk(function) if isinstance(item, ast.Name) and item.id == name.id and item is not name]
        return bool(uses) and all(isinstance(item.ctx, ast.Load) and self._fits(item) for item in uses)

    def _fits_unpacking(self, node: ast.expr) -> bool:
        """Whether the numbers of a list are assigned to names that can be tensors."""
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.For) and parent.iter is node:
            return isinstance(parent.target, ast.Name) and self._fits_name(parent.target)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], (ast.Tuple, ast.List)):
            names = parent.targets[0].elts
            return all(isinstance(item, ast.Name) and self._fits_name(item) for item in names)
        return False


def _is_number(node: ast.expr, plain: Collection[str]) -> bool:
    """Whether an operand is a number, judged by its text, so that only the other one can make the result a tensor."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, plain)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, plain) and _is_number(node.right, plain)
    if isinstance(node, ast.Name):
        return node.id in plain
    return is_plainly_python(node) or bool(conversions(node) and conversions(node)[0].call is node)
