"""Python's own functions and modules inside compiled code: copies, clocks, files, text, sorting."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator

from compile_inspect.fixes.base import Fixer, Place, last_name
from compile_inspect.fixes.expressions import argument, embedded, full_name, grouped, is_imported, last_value
from compile_inspect.fixes.side_work import belonging, guarded, is_side_call
from compile_inspect.fixes.source import SourceFile
from compile_inspect.records.fixes import Proposal

_KINDS = (
    "copy.deepcopy()",
    "Attempted to copy.deepcopy a tensor",
    "Unsupported inspect call",
    "Failed to trace builtin operator",
    "repr() on tensor",
    "id() with unsupported args",
    "sort with non-constant keys",
    "invalid call to builtin op handler",
)
_MATH = ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "floor", "ceil", "erf", "lgamma")
_EMPTY = "Where there is nothing to choose from, the error is an IndexError instead of a ValueError."
_HINTS = {
    "random": (
        "Draw the number before the compiled function and pass it in, or draw it with torch (`torch.rand(())`).",
        "torch.compile would keep the first number it saw, so that it leaves Python's `random` to Python.",
    ),
    "copy": (
        "Make copies before the compiled function (in `__init__`, or by the caller) and pass them in.",
        "For tensors `t.clone()` (or `t.detach().clone()`) is a copy that torch follows.",
    ),
    "os": ("Ask for files and settings once, outside the compiled function, and keep the answer in a variable.",),
    "inspect": ("Look at signatures and frames once, when the object is made, and keep the answer.",),
    "sort": (
        "Sort with torch: stack the keys, `order = torch.argsort(torch.stack(keys))`, and index with `order`.",
        "Keys that are Python numbers (`t.shape[0]`, `t.numel()`) can be sorted by as they are.",
    ),
}


class Builtins(Fixer):
    """Functions of Python itself that torch cannot follow."""

    name = "builtins"

    def concerns(self, place: Place) -> bool:
        """Whether one of Python's own functions is what torch could not follow."""
        if place.cause.kind.startswith(_KINDS):
            return True
        if not place.cause.kind.startswith(("Unsupported", "Attempted", "Reconstruction", "torch.* op returned", "Data dep")):
            return False
        named = re.search(r"module: (\w+)", place.cause.context)
        if named is not None and named.group(1).lstrip("_") in sys.stdlib_module_names:
            return True
        return bool(list(_expressions(place))) or (bool(_called(place)) and not place.cause.kind.startswith("Data dep"))

    def why(self, place: Place) -> str:
        """The reason."""
        name = _called(place)
        return (
            f"{f'`{name}`' if name else 'A function of Python itself'} is Python's own and no operation on tensors, so that it "
            "cannot be part of a compiled graph: the graph ends here, Python runs it, and another graph begins after it."
        )

    def proposals(self, place: Place) -> list[Proposal]:
        """The same as an operation of torch's, or the work left out while compiling."""
        found = []
        for title, node, new, changes in _expressions(place):
            change = None if place.source is None else embedded(place.source, node, new)
            if change is not None and place.source is not None:
                extra = place.source.insert_import("import torch") if "torch." in new else None
                needed = None if place.source.names("torch") == "torch" else extra
                found.append(self.rewrite(title, change, needed, changes=changes))
        left_out = self._left_out(place)
        return [*found, left_out] if left_out is not None else found

    def _left_out(self, place: Place) -> Proposal | None:
        """Side work whose results no tensor depends on, only where nothing is compiled."""
        source, statement = place.source, place.statement
        function = None if source is None else source.function_at(place.line)
        if source is None or statement is None or function is None or _side_call(place) is None:
            return None
        together = belonging(source, statement, function)
        changes = None if together is None else guarded(source, together)
        if changes is None:
            return None
        extra = source.insert_import("import torch") if source.names("torch") != "torch" else None
        told = "Compiled code does not do it any more; eager code does."
        return self.rewrite("Do it only where nothing is being compiled", *changes, extra, changes=told)

    def hints(self, place: Place) -> tuple[str, ...]:
        """What to do by hand."""
        name = _called(place)
        topic = (
            "sort"
            if name in ("sorted", "max", "min")
            else name.partition(".")[0].replace("pathlib", "os").replace("open", "os")
        )
        if topic in _HINTS:
            return _HINTS[topic]
        return (
            "Move it out of the compiled function: do it before the call and pass the result in, or after it.",
            "Or put it under `if not torch.compiler.is_compiling():` where only eager runs need it.",
        )


def _called(place: Place) -> str:
    """The function that torch could not follow, as the statement names it."""
    if place.source is None:
        return ""
    side, source = _side_call(place), place.source
    if side is not None:
        return full_name(source, side.func)
    for call in place.calls():
        name = full_name(source, call.func)
        module = name.partition(".")[0] in sys.stdlib_module_names and is_imported(source, call.func)
        if module or (hasattr(builtins, name) and place.says(f"`{name}`", f"{name}()")):
            return name
    ordering = [call for call in place.calls("sorted", "max", "min") if place.says("sort", "max", "min")]
    return full_name(source, ordering[0].func) if ordering else ""


def _side_call(place: Place) -> ast.Call | None:
    if place.source is None:
        return None
    for call in place.calls():
        name = full_name(place.source, call.func)
        # Text is made in many lines that break for other reasons.
        if is_side_call(place.source, call) and (name not in ("str", "repr") or place.says(f"`{name}`", f"{name}()")):
            return call
    return None


def _expressions(place: Place) -> Iterator[tuple[str, ast.expr, str, str]]:
    """Calls in the statement that torch has an operation for: title, call, what to write, what changes."""
    source = place.source
    if source is None:
        return
    for call in place.calls():
        name, first = full_name(source, call.func), argument(call, 0, "")
        if first is None or any(isinstance(item, ast.Starred) for item in call.args):
            continue
        if name == "copy.deepcopy" and len(call.args) == 1:
            yield from _copies(source, call, first, place.line)
        elif name == "pow" and len(call.args) == 2:
            base, power = (
                source.segment(item) if isinstance(item, ast.Constant) else grouped(source, item) for item in call.args
            )
            yield "Write the power as an operator", call, f"{base} ** {power}", ""
        elif name in ("max", "min") and len(call.args) == 1 and [item.arg for item in call.keywords] == ["key"]:
            order = ", reverse=True" if name == "max" else ""
            texts = f"{source.segment(first)}, key={source.segment(call.keywords[0].value)}"
            yield f"Sort, and take the first instead of {name}", call, f"sorted({texts}{order})[0]", _EMPTY
        elif name in ("heapq.nlargest", "heapq.nsmallest") and len(call.args) == 2:
            order = ", reverse=True" if name.endswith("largest") else ""
            texts = ", ".join([source.segment(call.args[1]), *(source.segment(item) for item in call.keywords)])
            yield "Sort, and take the first ones", call, f"sorted({texts}{order})[:{source.segment(first)}]", ""
        elif name == "sorted" and len(call.args) == 1 and not call.keywords and "Tensor" in place.cause.explanation:
            yield "Sort with torch", call, f"list(torch.sort({source.segment(first)}).values)", ""
        elif name.startswith("math.") and name.removeprefix("math.") in _MATH and len(call.args) == 1:
            if not place.says("_local_scalar") or _is_size(first):
                continue
            new = f"torch.{name.removeprefix('math.')}({_detached(source, first)})"
            told = "The result is a tensor without dimensions instead of a Python number, and in the precision of the tensor."
            yield f"Write {name} as torch.{name.removeprefix('math.')}", call, new, told


def _copies(source: SourceFile, call: ast.Call, first: ast.expr, line: int) -> Iterator[tuple[str, ast.expr, str, str]]:
    """A copy of a tensor, or of a list or dictionary of tensors that the function makes itself."""
    value = last_value(source, first.id, line) if isinstance(first, ast.Name) else first
    text = grouped(source, first)
    if isinstance(value, (ast.List, ast.ListComp)):
        yield "Clone each tensor of the list", call, f"[item.detach().clone() for item in {text}]", ""
    elif isinstance(value, (ast.Dict, ast.DictComp)):
        new = f"{{key: value.detach().clone() for key, value in {text}.items()}}"
        yield "Clone each tensor of the dictionary", call, new, ""
    else:
        yield "Clone the tensor", call, f"{_detached(source, first)}.clone()", ""
        if isinstance(first, (ast.Name, ast.Attribute)):
            told = "Gradients go through the copy to the original."
            yield "Clone the tensor, with its gradient", call, f"{text}.clone()", told


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is a number that is known beforehand: one of a shape, or one that is written out."""
    inner = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Constant) or last_name(inner) in ("shape", "size", "ndim", "numel", "dim", "len")


def _detached(source: SourceFile, node: ast.expr) -> str:
    text = grouped(source, node)
    return text if text.endswith(".detach()") else f"{text}.detach()"
