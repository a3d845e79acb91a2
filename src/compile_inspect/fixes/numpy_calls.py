"""numpy inside compiled code, where torch has no translation of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compile_inspect.fixes.base import Fixer, Place, dotted
from compile_inspect.fixes.expressions import embedded
from compile_inspect.fixes.numpy_words import CHANGES, NumpyCall, writer_of
from compile_inspect.records.fixes import Proposal, Replacement

_MODULES = ("itertools", "contextlib")
_TO_TENSOR = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
_RANDOM = ("random.", "default_rng", "RandomState")


class NumpyCalls(Fixer):
    """Calls of numpy that torch cannot put into a graph."""

    name = "numpy_calls"

    def concerns(self, place: Place) -> bool:
        """Whether numpy is what torch could not follow."""
        if place.says("numpy function", "numpy.ndarray to Tensor", "ndarray method", "site-packages/numpy/", "NumpyNdarray"):
            return True
        if place.cause.kind == "Unsupported context manager" and place.says("errstate"):
            return True
        return place.cause.kind.startswith(("Data dependent operator", "Dynamic shape")) and any(_calls(place))

    def why(self, place: Place) -> str:
        """The reason."""
        names = [call.name for call in _calls(place)]
        called = f"`numpy.{names[0]}`" if names else "this use of numpy"
        return (
            f"torch translates many numpy functions into its own while it compiles, but not {called}: the graph ends here, "
            "numpy runs, and another graph begins after it."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The same in numpy functions that torch translates, else the function of torch's own."""
        found = []
        for call in _calls(place):
            writer = writer_of(call.name)
            new = None if writer is None else writer(call)
            change = None if new is None else _written(call, new)
            if change is not None:
                source = call.source
                imports = [source.insert_import(f"import {name}") for name in _MODULES if f"{name}." in change.new]
                if "torch." in change.new and source.names("torch") != "torch":
                    imports.append(source.insert_import("import torch"))
                title = f"Write {call.numpy}.{call.name} in terms that torch translates"
                found.append(self.rewrite(title, change, *imports, changes=CHANGES.get(call.name, "")))
        return [*found, *self._grids(place)]

    def _grids(self, place: Place) -> Iterator[Proposal]:
        """`np.mgrid[0:h, 0:w]`: the indices of an array of that shape."""
        source = place.source
        numpy = None if source is None else source.names("numpy")
        nodes = [] if source is None or place.statement is None else source.head(place.statement)
        for node in nodes:
            if source is None or not isinstance(node, ast.Subscript) or dotted(node.value) != f"{numpy}.mgrid":
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            ends = [source.segment(part.upper) for part in parts if isinstance(part, ast.Slice) and _from_zero(part)]
            if parts and len(ends) == len(parts) and all(ends):
                change = embedded(source, node, f"{numpy}.indices(({', '.join(ends)}))")
                if change is not None:
                    yield self.rewrite(f"Write {numpy}.mgrid as {numpy}.indices", change)

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        names = " ".join(call.name for call in _calls(place))
        if any(word in names for word in _RANDOM):
            return (
                "Draw the random numbers before the compiled function and pass them in as a tensor.",
                "Or draw them with torch (`torch.rand`, `torch.randperm`, `torch.distributions`); the numbers are then others.",
            )
        if "interp" in names:
            return (
                "Find the neighbors with `torch.searchsorted` and mix them: "
                "`y0 + (x - x0) * (y1 - y0) / (x1 - x0)`; torch has no `interp` of its own.",
            )
        if place.says("numpy.ndarray to Tensor"):
            return (
                "Arrays of Python objects or text cannot be tensors: turn them into numbers before the compiled function.",
                "Or move the line into a function under `torch.compiler.disable`: one graph break, but no surprises.",
            )
        return (
            "Write it with torch functions, or with numpy functions that torch translates (most element-wise ones and sums).",
            "What does not depend on the inputs (tables, windows, grids) can be computed once, outside the compiled function.",
        )


def _calls(place: Place) -> Iterator[NumpyCall]:
    """The calls of numpy's in the statement."""
    source = place.source
    numpy = None if source is None else source.names("numpy")
    if source is None or numpy is None:
        return
    for node in place.calls():
        name = dotted(node.func)
        if name.startswith(f"{numpy}."):
            yield NumpyCall(source, node, numpy, name.removeprefix(f"{numpy}."))


def _written(call: NumpyCall, new: str) -> Replacement | None:
    """Write it in the place of the call; what is made into a tensor at once stays one."""
    parent = call.source.parents.get(call.node)
    if isinstance(parent, ast.Call) and dotted(parent.func) in _TO_TENSOR and len(parent.args) == 1 and not parent.keywords:
        tensor = new.removesuffix(".numpy()")
        if tensor != new:
            return embedded(call.source, parent, tensor)
    return embedded(call.source, call.node, new)


def _from_zero(part: ast.Slice) -> bool:
    zero = part.lower is None or (isinstance(part.lower, ast.Constant) and part.lower.value == 0)
    return zero and part.step is None and part.upper is not None
