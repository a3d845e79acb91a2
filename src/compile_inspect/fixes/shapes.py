"""Operations with a data-dependent shape: masked selections, nonzero, unique, counts, tensors as indices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compile_inspect.fixes.base import BreakSite, Fixer, dotted
from compile_inspect.fixes.expressions import argument, checked, embedded, grouped
from compile_inspect.fixes.masks import Rewrite, assignments, counts, losses, reductions, selections
from compile_inspect.fixes.named_selections import named_selections
from compile_inspect.records.fixes import Proposal

_SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
_SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
_TO_NUMBERS = ("item", "tolist", "int", "float", "bool")


class Shapes(Fixer):
    """Operations whose output shape depends on the values of a tensor."""

    name = "shapes"

    def matches(self, site: BreakSite) -> bool:
        """Whether a shape depends on tensor values."""
        kind = site.cause.kind
        if kind.startswith(("Dynamic shape operator", "Dynamic slicing with Tensor", "unsupported index(Tensor)")):
            return True
        return "data-dependent output shape" in kind or _needs_number(site)

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        if _needs_number(site):
            return (
                "A tensor is used where Python needs a number (an index, the end of a slice, a size). The number is known only "
                "when the program runs, but the graph is compiled before that: the graph ends here."
            )
        return (
            f"How many values {_operation(site)} returns depends on the values of the tensor, but a graph is compiled for "
            "known shapes: the graph ends here, Python runs the operation, and another graph begins after it."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Avoid the selection, or else let torch trace unknown shapes."""
        proposals = [self.rewrite(item.title, *item.replacements, changes=item.changes) for item in _rewrites(site)]
        if "one_hot" in site.cause.kind:
            return proposals
        if _needs_number(site):
            where = "The number is used as a size or a bound."
            return [*proposals, self.setting("Let the graph contain numbers from tensors", _SCALARS, where=where)]
        where = "Only tensor operations use the result, and Python code does not read its length."
        return [
            *proposals,
            self.setting("Let the graph contain results of unknown length", _SHAPES, where=where),
            self.setting(
                "Let the graph contain results of unknown length and numbers from them", _SHAPES, _SCALARS, where=where
            ),
        ]

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        operation = _operation(site)
        if _needs_number(site):
            return (
                "Keep the full length and mask the elements you do not need: `torch.arange(length) < n` instead of `[:n]`.",
                "Or pass the number into the compiled function as a Python int, computed before the call.",
            )
        if "one_hot" in operation:
            return ("Pass the number of classes, `one_hot(labels, num_classes=n)`, so that the shape is known.",)
        if "repeat_interleave" in operation:
            return ("Pass the length of the result, `repeat_interleave(repeats, output_size=n)`, where n is a Python int.",)
        if "unique" in operation:
            return (
                "If the possible values are known, use `torch.isin` or a one-hot matrix over them instead of `unique`.",
                "Or compute the unique values before the compiled function and pass them in.",
            )
        return (
            "Keep all values and mask those you do not need: `torch.where(mask, x, 0)` has a known shape.",
            "If you need only a few values, `topk` with a fixed number also has a known shape.",
        )


def _operation(site: BreakSite) -> str:
    """The operation that torch reports, under the name the user knows."""
    for name in ("masked_select", "repeat_interleave", "one_hot", "bincount", "unique_consecutive", "unique", "lstsq"):
        if site.mentions(name):
            return f"`{name}`"
    if "aten.nonzero" in site.cause.context:
        return "a selection with a mask" if selections(site) else "`nonzero`"
    return "this operation"


def _needs_number(site: BreakSite) -> bool:
    """Whether a tensor is used where Python needs a number: as an index, a bound or a size."""
    if not site.mentions("_local_scalar_dense", "Tensor.item()") or site.calls(*_TO_NUMBERS) or site.source is None:
        return False
    heads = [] if site.statement is None else site.source.head(site.statement)
    if any(isinstance(node, ast.Subscript) and _is_dynamic_index(node.slice) for node in heads):
        return True
    return bool(site.calls("arange", "zeros", "ones", "full", "empty", "narrow", "expand", "repeat", "topk", "tensor_split"))


def _is_dynamic_index(index: ast.expr) -> bool:
    """Whether an index has a part that is known only at run time."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    bounds = [bound for part in parts for bound in ((part.lower, part.upper) if isinstance(part, ast.Slice) else (part,))]
    return any(bound is not None and not isinstance(bound, (ast.Constant, ast.UnaryOp)) for bound in bounds)


def _rewrites(site: BreakSite) -> Iterator[Rewrite]:
    if site.source is None or site.source.module_alias("torch") != "torch":
        return
    if _needs_number(site):
        yield from _indices(site)
        return
    yield from losses(site)
    yield from assignments(site)
    count_rewrites = list(counts(site))
    for item in reductions(site):
        # In a sum divided by a count, rewriting only one of the two would leave the break.
        parts = [item, *count_rewrites]
        note = " ".join(part.changes for part in parts if part.changes)
        yield Rewrite(item.title, note, tuple(change for part in parts for change in part.replacements))
    yield from named_selections(site)
    yield from count_rewrites
    yield from _bincounts(site)
    yield from _least_squares(site)


def _indices(site: BreakSite) -> Iterator[Rewrite]:
    """Replace `x[i]` with a zero-dimensional tensor by an index with one element, which torch traces, and squeeze."""
    source, statement = site.source, site.statement
    if source is None or statement is None:
        return
    for node in source.head(statement):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, (ast.Name, ast.Attribute, ast.Call, ast.Tuple)):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        single = [part for part in parts if not isinstance(part, ast.Slice)]
        all_full = all(part.lower is part.upper is part.step is None for part in parts if isinstance(part, ast.Slice))
        if len(single) != 1 or not all_full or not isinstance(single[0], (ast.Name, ast.Attribute, ast.Call)):
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
            yield Rewrite("Index with a tensor of one element", "", (change,))


def _bincounts(site: BreakSite) -> Iterator[Rewrite]:
    """Replace `bincount` with a `minlength` by a sum of one-hot vectors."""
    source = site.source
    for call in site.calls("bincount"):
        if source is None or not dotted(call.func).startswith("torch.") or argument(call, 1, "weights") is not None:
            continue
        values, length = argument(call, 0, "input"), argument(call, 2, "minlength")
        if values is not None and length is not None:
            new = f"torch.nn.functional.one_hot({source.segment(values)}, {source.segment(length)}).sum(0)"
            change = embedded(source, call, new)
            if change is not None:
                note = "A value that is not below `minlength` is an error instead of a longer result."
                yield Rewrite("Count by summing one-hot vectors", note, (change,))


def _least_squares(site: BreakSite) -> Iterator[Rewrite]:
    """Replace the solution of `lstsq` by a product with the pseudoinverse."""
    source = site.source
    for call in site.calls("lstsq"):
        parent = None if source is None else source.parents.get(call)
        takes_solution = isinstance(parent, ast.Attribute) and parent.attr == "solution"
        if (
            source is None
            or not takes_solution
            or dotted(call.func) != "torch.linalg.lstsq"
            or len(call.args) != 2
            or call.keywords
        ):
            continue
        matrix, right = source.segment(call.args[0]), grouped(source, call.args[1])
        change = embedded(source, parent, f"torch.linalg.pinv({matrix}) @ {right}") if isinstance(parent, ast.expr) else None
        if change is not None:
            note = "The pseudoinverse takes more time and memory than lstsq for large matrices."
            yield Rewrite("Solve with the pseudoinverse", note, (change,))
