"""Results whose shape depends on values: selections with masks, nonzero, unique, counts, tensors as indices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compile_inspect.fixes.base import Fixer, Place, dotted
from compile_inspect.fixes.expressions import argument, checked, embedded, grouped
from compile_inspect.fixes.masked_names import named_selections
from compile_inspect.fixes.masks import Rewritten, assignments, counts, losses, reductions, selections
from compile_inspect.records.fixes import Proposal

_SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
_SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
_TO_NUMBERS = ("item", "tolist", "int", "float", "bool")


class Shapes(Fixer):
    """Operations whose result is longer or shorter depending on what is in a tensor."""

    name = "shapes"

    def concerns(self, place: Place) -> bool:
        """Whether a shape depends on values."""
        kind = place.cause.kind
        if kind.startswith(("Dynamic shape operator", "Dynamic slicing with Tensor", "unsupported index(Tensor)")):
            return True
        return "data-dependent output shape" in kind or _by_number(place)

    def why(self, place: Place) -> str:
        """The reason."""
        if _by_number(place):
            return (
                "A tensor is used where Python needs a number (an index, the end of a slice, a size). The number is known only "
                "when the program runs, and a compiled graph is built before that: the graph ends here."
            )
        return (
            f"How many values {_operation(place)} returns depends on what is in the tensor, and a compiled graph is built for "
            "shapes that are known beforehand: the graph ends here, Python runs it, and another graph begins after it."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """Do without the selection; else let torch follow shapes that it does not know."""
        found = [self.rewrite(item.title, *item.replacements, changes=item.changes) for item in _rewrites(place)]
        if "one_hot" in place.cause.kind:
            return found
        if _by_number(place):
            where = "The number is a size or a bound."
            return [*found, self.setting("Let torch keep numbers from tensors in the graph", _SCALARS, where=where)]
        where = "The result is worked with further, and nothing in Python asks how long it is."
        return [
            *found,
            self.setting("Let torch keep results of unknown length in the graph", _SHAPES, where=where),
            self.setting(
                "Let torch keep results of unknown length and numbers from them in the graph", _SHAPES, _SCALARS, where=where
            ),
        ]

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        operation = _operation(place)
        if _by_number(place):
            return (
                "Keep the full length and mask what does not count: `torch.arange(length) < n` instead of `[:n]`.",
                "Or pass the number into the compiled function as a Python int, computed before the call.",
            )
        if "one_hot" in operation:
            return ("Say how many classes there are: `one_hot(labels, num_classes=n)`. Then the shape is known.",)
        if "repeat_interleave" in operation:
            return ("Say how long the result is: `repeat_interleave(repeats, output_size=n)`, where n is a Python int.",)
        if "unique" in operation:
            return (
                "Where the possible values are known, `torch.isin` or a one-hot matrix over them needs no `unique`.",
                "Or find the unique values before the compiled function and pass them in.",
            )
        return (
            "Keep all values and mask those that do not count: `torch.where(mask, x, 0)` has a shape that is known.",
            "Where few values are needed, `topk` with a fixed number also gives a known shape.",
        )


def _operation(place: Place) -> str:
    """What torch stumbled over, as the user knows it."""
    for name in ("masked_select", "repeat_interleave", "one_hot", "bincount", "unique_consecutive", "unique", "lstsq"):
        if place.says(name):
            return f"`{name}`"
    if "aten.nonzero" in place.cause.context:
        return "a selection with a mask" if selections(place) else "`nonzero`"
    return "this operation"


def _by_number(place: Place) -> bool:
    """Whether a tensor stands where a number has to: as an index, a bound or a size."""
    if not place.says("_local_scalar_dense", "Tensor.item()") or place.calls(*_TO_NUMBERS) or place.source is None:
        return False
    heads = [] if place.statement is None else place.source.head(place.statement)
    if any(isinstance(node, ast.Subscript) and _variable(node.slice) for node in heads):
        return True
    return bool(place.calls("arange", "zeros", "ones", "full", "empty", "narrow", "expand", "repeat", "topk", "tensor_split"))


def _variable(index: ast.expr) -> bool:
    """Whether an index has a part that only the running program knows."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    bounds = [bound for part in parts for bound in ((part.lower, part.upper) if isinstance(part, ast.Slice) else (part,))]
    return any(bound is not None and not isinstance(bound, (ast.Constant, ast.UnaryOp)) for bound in bounds)


def _rewrites(place: Place) -> Iterator[Rewritten]:
    if place.source is None or place.source.names("torch") != "torch":
        return
    if _by_number(place):
        yield from _indices(place)
        return
    yield from losses(place)
    yield from assignments(place)
    counted = list(counts(place))
    for item in reductions(place):
        # A sum over a count: one without the other would leave the break where it is.
        whole = [item, *counted]
        told = " ".join(part.changes for part in whole if part.changes)
        yield Rewritten(item.title, told, tuple(change for part in whole for change in part.replacements))
    yield from named_selections(place)
    yield from counted
    yield from _bincounts(place)
    yield from _least_squares(place)


def _indices(place: Place) -> Iterator[Rewritten]:
    """`x[i]` with a tensor of no dimensions: an index of one element, which torch follows, and the dimension taken off."""
    source, statement = place.source, place.statement
    if source is None or statement is None:
        return
    for node in source.head(statement):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, (ast.Name, ast.Attribute, ast.Call, ast.Tuple)):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        single = [part for part in parts if not isinstance(part, ast.Slice)]
        whole = all(part.lower is part.upper is part.step is None for part in parts if isinstance(part, ast.Slice))
        if len(single) != 1 or not whole or not isinstance(single[0], (ast.Name, ast.Attribute, ast.Call)):
            continue
        index = single[0]
        new = f"{grouped(source, index)}.reshape(1)"
        if isinstance(node.ctx, ast.Store):
            change = checked(source, source.replace(index, new))
        else:
            (start, end), (before, after) = source.span(node), source.span(index)
            text = source.between(start, before) + new + source.between(after, end)
            change = embedded(source, node, f"{text}.squeeze({parts.index(index)})")
        if change is not None:
            yield Rewritten("Index with a tensor of one element", "", (change,))


def _bincounts(place: Place) -> Iterator[Rewritten]:
    """`bincount` with a `minlength`: rows of one-hot vectors, added up."""
    source = place.source
    for call in place.calls("bincount"):
        if source is None or not dotted(call.func).startswith("torch.") or argument(call, 1, "weights") is not None:
            continue
        values, length = argument(call, 0, "input"), argument(call, 2, "minlength")
        if values is not None and length is not None:
            new = f"torch.nn.functional.one_hot({source.segment(values)}, {source.segment(length)}).sum(0)"
            change = embedded(source, call, new)
            if change is not None:
                told = "A value that is not below `minlength` is an error instead of a longer result."
                yield Rewritten("Count by adding up one-hot vectors", told, (change,))


def _least_squares(place: Place) -> Iterator[Rewritten]:
    """The solution of `lstsq`: a product with the pseudoinverse."""
    source = place.source
    for call in place.calls("lstsq"):
        parent = None if source is None else source.parents.get(call)
        taken = isinstance(parent, ast.Attribute) and parent.attr == "solution"
        if source is None or not taken or dotted(call.func) != "torch.linalg.lstsq" or len(call.args) != 2 or call.keywords:
            continue
        left, right = source.segment(call.args[0]), grouped(source, call.args[1])
        change = embedded(source, parent, f"torch.linalg.pinv({left}) @ {right}") if isinstance(parent, ast.expr) else None
        if change is not None:
            told = "The pseudoinverse takes more time and memory than lstsq for large matrices."
            yield Rewritten("Solve with the pseudoinverse", told, (change,))
