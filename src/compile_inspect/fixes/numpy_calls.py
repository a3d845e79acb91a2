"""numpy functions in compiled code that torch cannot translate."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compile_inspect.fixes.base import BreakSite, Fixer, dotted
from compile_inspect.fixes.expressions import embedded
from compile_inspect.fixes.numpy_translation import CHANGES, NumpyCall, translator_of
from compile_inspect.records.fixes import Proposal, Replacement

_MODULES = ("itertools", "contextlib")
_TO_TENSOR = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
_RANDOM = ("random.", "default_rng", "RandomState")


class NumpyCalls(Fixer):
    """Calls to numpy functions that torch cannot put into a graph."""

    name = "numpy_calls"

    def matches(self, site: BreakSite) -> bool:
        """Whether numpy is what torch could not trace."""
        if site.mentions("numpy function", "numpy.ndarray to Tensor", "ndarray method", "site-packages/numpy/", "NumpyNdarray"):
            return True
        if site.cause.kind == "Unsupported context manager" and site.mentions("errstate"):
            return True
        return site.cause.kind.startswith(("Data dependent operator", "Dynamic shape")) and any(_calls(site))

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        names = [call.name for call in _calls(site)]
        called = f"`numpy.{names[0]}`" if names else "this use of numpy"
        return (
            f"torch.compile translates many numpy functions into torch functions, but not {called}: the graph ends here, "
            "numpy runs, and another graph begins after it."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Use numpy functions that torch translates, or else torch functions."""
        proposals = []
        for call in _calls(site):
            translator = translator_of(call.name)
            new = None if translator is None else translator(call)
            change = None if new is None else _replacement_for(call, new)
            if change is not None:
                source = call.source
                imports = [source.insert_import(f"import {name}") for name in _MODULES if f"{name}." in change.new]
                if "torch." in change.new and source.module_alias("torch") != "torch":
                    imports.append(source.insert_import("import torch"))
                title = f"Replace {call.numpy}.{call.name} with functions that torch translates"
                proposals.append(self.rewrite(title, change, *imports, changes=CHANGES.get(call.name, "")))
        return [*proposals, *self._grids(site)]

    def _grids(self, site: BreakSite) -> Iterator[Proposal]:
        """Replace `np.mgrid[0:h, 0:w]` by the indices of an array of that shape."""
        source = site.source
        numpy = None if source is None else source.module_alias("numpy")
        nodes = [] if source is None or site.statement is None else source.head(site.statement)
        for node in nodes:
            if source is None or not isinstance(node, ast.Subscript) or dotted(node.value) != f"{numpy}.mgrid":
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            ends = [source.segment(part.upper) for part in parts if isinstance(part, ast.Slice) and _from_zero(part)]
            if parts and len(ends) == len(parts) and all(ends):
                change = embedded(source, node, f"{numpy}.indices(({', '.join(ends)}))")
                if change is not None:
                    yield self.rewrite(f"Replace {numpy}.mgrid with {numpy}.indices", change)

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        names = " ".join(call.name for call in _calls(site))
        if any(word in names for word in _RANDOM):
            return (
                "Draw the random numbers before the compiled function and pass them in as a tensor.",
                "Or draw them with torch (`torch.rand`, `torch.randperm`, `torch.distributions`); the numbers will differ.",
            )
        if "interp" in names:
            return (
                "Find the neighbors with `torch.searchsorted` and interpolate: "
                "`y0 + (x - x0) * (y1 - y0) / (x1 - x0)`; torch has no `interp`.",
            )
        if site.mentions("numpy.ndarray to Tensor"):
            return (
                "Arrays of Python objects or strings cannot become tensors: convert them to numbers before the compiled "
                "function.",
                "Or move the line into a function under `torch.compiler.disable`, which makes the graph break explicit.",
            )
        return (
            "Use torch functions, or numpy functions that torch translates (most element-wise ones and sums).",
            "Compute what does not depend on the inputs (tables, windows, grids) once, outside the compiled function.",
        )


def _calls(site: BreakSite) -> Iterator[NumpyCall]:
    """The calls to numpy functions in the statement."""
    source = site.source
    numpy = None if source is None else source.module_alias("numpy")
    if source is None or numpy is None:
        return
    for node in site.calls():
        name = dotted(node.func)
        if name.startswith(f"{numpy}."):
            yield NumpyCall(source, node, numpy, name.removeprefix(f"{numpy}."))


def _replacement_for(call: NumpyCall, new: str) -> Replacement | None:
    """Replace the call; if the result is converted to a tensor right away, replace the conversion too."""
    parent = call.source.parents.get(call.node)
    if isinstance(parent, ast.Call) and dotted(parent.func) in _TO_TENSOR and len(parent.args) == 1 and not parent.keywords:
        tensor = new.removesuffix(".numpy()")
        if tensor != new:
            return embedded(call.source, parent, tensor)
    return embedded(call.source, call.node, new)


def _from_zero(part: ast.Slice) -> bool:
    zero = part.lower is None or (isinstance(part.lower, ast.Constant) and part.lower.value == 0)
    return zero and part.step is None and part.upper is not None
