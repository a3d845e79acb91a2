"""Numbers that are taken out of a tensor inside compiled code: `.item()`, `.tolist()`, `float(t)`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from compile_inspect.fixes.base import Fixer, Place, dotted, last_name
from compile_inspect.fixes.scopes import function_of, lost_comments, plain_names, statements
from compile_inspect.fixes.source import SourceFile
from compile_inspect.fixes.tensor_expressions import Conversion, Template, Writer, conversions, is_plainly_python
from compile_inspect.records.fixes import Proposal, Replacement

_MATHEMATICS = ("sqrt", "exp", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "floor", "ceil", "fabs")
_TAKE_TENSORS = (
    "add", "sub", "mul", "div", "pow", "clamp", "clip", "clamp_min", "clamp_max", "where", "masked_fill", "maximum", "minimum",
    "fmod", "remainder", "lerp", "add_", "sub_", "mul_", "div_", "clamp_", "masked_fill_", "fill_", "eq", "ne", "lt", "le",
    "gt", "ge", "index_select", "true_divide", "floor_divide",
)  # fmt: skip
_KEPT = (
    "The number keeps the type of its tensor: what is computed from it may be rounded otherwise, integers can overflow, and "
    "what raises for a Python number (a division by 0, the logarithm of 0) gives infinity or NaN"
)


class Scalars(Fixer):
    """Tensors that are made Python numbers."""

    name = "scalars"

    def concerns(self, place: Place) -> bool:
        """Whether a number is asked of a tensor there."""
        if place.says("Tensor.item()", "GB0124", "aten._local_scalar_dense", "Tensor.tolist", "capture_scalar_outputs"):
            return True
        return place.says("Data dependent operator", "Data-dependent") and bool(_conversions(place))

    def why(self, place: Place) -> str:
        """The reason."""
        return (
            "A Python number is made of a tensor, but while the function is compiled no tensor has a value yet: the graph "
            "ends, runs, hands the number to Python, and another graph begins after it. On a GPU the program also waits there."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """Leave the number in its tensor; or let the graph hold the number."""
        found = []
        if place.source is not None and not isinstance(place.statement, (ast.If, ast.While, ast.Assert)):
            # A number of Python has no gradient, and a tensor in its place must have none either.
            detached = _Tensors(place.source, ".detach()")
            if detached.take(_conversions(place)):
                where = "The number is only computed with, and is meant to be a constant to the gradient, as it was."
                title = "Leave the number in its tensor, without a gradient"
                found.append(self.rewrite(title, *detached.replacements(), changes=f"{_KEPT}.", where=where))
        found.append(
            self.setting(
                "Let graphs hold numbers that are not known yet",
                "torch._dynamo.config.capture_scalar_outputs = True",
                changes="A number that decides how often a loop runs, or a size, may be compiled for anew when it differs.",
                where="The number is needed as one: as a size or an index, in what is returned or stored.",
            )
        )
        return found

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        return (
            "Keep the value a tensor as long as it is only computed with, and call .item() outside the compiled function.",
            "Statistics for a log need not be numbers yet: return x.detach() and convert it where it is written.",
            "Where the number is a size, give the function that size as an argument, or pad to a fixed size and mask.",
        )


def _conversions(place: Place) -> list[Conversion]:
    """The conversions in the statements of the line."""
    if place.source is None:
        return []
    found = []
    for statement in statements(place):
        heads = set(place.source.head(statement))
        found += [item for item in conversions(statement) if item.call in heads]
    return found


class _Tensors:
    """Replacements that make conversions the tensors themselves, and all that depends on them fit for that."""

    def __init__(self, source: SourceFile, after: str = "") -> None:
        self.source, self.after, self.writer = source, after, Writer(source)
        self.changes: dict[ast.AST, Template] = self.writer.templates
        self._seen: set[ast.AST] = set()

    def take(self, known: list[Conversion]) -> bool:
        """Whether there are such replacements for at least one of the conversions; those that have none stay."""
        taken = 0
        for item in known:
            before = dict(self.changes)
            if self._take(item):
                taken += 1
            else:
                self.changes.clear()
                self.changes.update(before)
        return taken > 0 and not any(
            lost_comments(self.source, node, node, self.writer.written(node)) for node in self._outer()
        )

    def _take(self, known: Conversion) -> bool:
        if known.kind == "tolist":
            self.changes[known.call] = (self.writer.atom(known.tensor), f"{self.after}.unbind()")
            return self._unpacked(known.call)
        if known.kind == "bool":
            truth = self.writer.truth(known.tensor)
            self.changes[known.call] = (f"({truth})",)
            return truth is not None and self._fits(known.call)
        self.changes[known.call] = self.writer.operand(known, after=self.after)
        return self._fits(known.call)

    def replacements(self) -> list[Replacement | None]:
        """The changes, the outermost ones with the inner ones in them."""
        outer = self._outer()
        imported = self.writer.import_torch() if any(self.writer.torch in self.writer.written(node) for node in outer) else None
        return [*[self.source.replace(node, self.writer.written(node)) for node in outer], imported]

    def _outer(self) -> list[ast.AST]:
        return [node for node in self.changes if not any(above in self.changes for above in self.source.above(node))]

    def _fits(self, node: ast.expr) -> bool:
        """Whether an expression may be a tensor where it was a number, with what has to change for that noted down."""
        if node in self._seen:
            return True
        self._seen.add(node)
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = self.source.parents.get(parent)
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, (ast.UAdd, ast.USub)):
            return self._fits(parent)
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is node else parent.left
            return self._fits(parent) if _is_number(other, plain_names(self.source, node)) else True
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
        # An index of no dimensions is asked for its number all the same; one of one dimension is not.
        left, right = ("(", ")") if isinstance(node, (ast.BinOp, ast.UnaryOp)) else ("", "")
        self.changes[subscript] = (subscript.value, f"[{left}", node, f"{right}.reshape(1)].squeeze(0)")
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
        if name.startswith("math.") and last in _MATHEMATICS and len(call.args) == 1:
            self.changes[call] = (f"{self.writer.torch}.{'abs' if last == 'fabs' else last}(", node, ")")
            return self._fits(call)
        if name == "abs":
            return self._fits(call)
        return isinstance(call.func, ast.Attribute) and last in _TAKE_TENSORS

    def _fits_name(self, name: ast.Name) -> bool:
        """Whether all that is read of a name may be a tensor; it is written once in its function."""
        function = function_of(self.source, name)
        if function is None:
            return False
        uses = [item for item in ast.walk(function) if isinstance(item, ast.Name) and item.id == name.id and item is not name]
        return bool(uses) and all(isinstance(item.ctx, ast.Load) and self._fits(item) for item in uses)

    def _unpacked(self, node: ast.expr) -> bool:
        """Whether the numbers of a list go to names that may be tensors."""
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.For) and parent.iter is node:
            return isinstance(parent.target, ast.Name) and self._fits_name(parent.target)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], (ast.Tuple, ast.List)):
            names = parent.targets[0].elts
            return all(isinstance(item, ast.Name) and self._fits_name(item) for item in names)
        return False


def _is_number(node: ast.expr, plain: Collection[str]) -> bool:
    """Whether an operand is a number as far as can be seen, so that only the other one can make the result a tensor."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, plain)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, plain) and _is_number(node.right, plain)
    if isinstance(node, ast.Name):
        return node.id in plain
    return is_plainly_python(node) or bool(conversions(node) and conversions(node)[0].call is node)
