"""Built-in functions and standard modules inside compiled code: copies, clocks, files, strings, sorting."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator

from compile_inspect.fixes.base import BreakSite, Fixer, last_name
from compile_inspect.fixes.expressions import argument, embedded, full_name, grouped, is_imported, last_value
from compile_inspect.fixes.side_effects import dependent_statements, guard_statements, has_side_effect
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
_MATH_FUNCTIONS = (
    "sqrt",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sin",
    "cos",
    "tan",
    "tanh",
    "floor",
    "ceil",
    "erf",
    "lgamma",
)
_EMPTY_NOTE = "For an empty sequence, the error is an IndexError instead of a ValueError."
_HINTS = {
    "random": (
        "Draw the number before the compiled function and pass it in, or draw it with torch (`torch.rand(())`).",
        "torch.compile would compile the first number in as a constant, so it leaves `random` to Python.",
    ),
    "copy": (
        "Make copies before the compiled function (in `__init__`, or in the caller) and pass them in.",
        "For tensors, use `t.clone()` (or `t.detach().clone()`), which torch traces.",
    ),
    "os": ("Read files and settings once, outside the compiled function, and store the result in a variable.",),
    "inspect": ("Inspect signatures and frames once, when the object is created, and store the result.",),
    "sort": (
        "Sort with torch: stack the keys, `order = torch.argsort(torch.stack(keys))`, and index with `order`.",
        "Python's sort works for keys that are Python numbers (`t.shape[0]`, `t.numel()`).",
    ),
}


class Builtins(Fixer):
    """Built-in and standard-library functions that torch cannot trace."""

    name = "builtins"

    def matches(self, site: BreakSite) -> bool:
        """Whether torch could not trace a built-in or standard-library function."""
        if site.cause.kind.startswith(_KINDS):
            return True
        if not site.cause.kind.startswith(("Unsupported", "Attempted", "Reconstruction", "torch.* op returned", "Data dep")):
            return False
        named = re.search(r"module: (\w+)", site.cause.context)
        if named is not None and named.group(1).lstrip("_") in sys.stdlib_module_names:
            return True
        return bool(list(_translations(site))) or (bool(_function_name(site)) and not site.cause.kind.startswith("Data dep"))

    def why(self, site: BreakSite) -> str:
        """Why the graph breaks."""
        name = _function_name(site)
        return (
            f"{f'`{name}`' if name else 'The called function'} belongs to Python and is not a tensor operation, so it cannot "
            "be part of a compiled graph: the graph ends here, Python runs it, and another graph begins after it."
        )

    def proposals(self, site: BreakSite) -> list[Proposal]:
        """Use an equivalent torch operation, or skip the work in compiled code."""
        proposals = []
        for title, node, new, changes in _translations(site):
            change = None if site.source is None else embedded(site.source, node, new)
            if change is not None and site.source is not None:
                extra = site.source.insert_import("import torch") if "torch." in new else None
                torch_import = None if site.source.module_alias("torch") == "torch" else extra
                proposals.append(self.rewrite(title, change, torch_import, changes=changes))
        left_out = self._skip_when_compiling(site)
        return [*proposals, left_out] if left_out is not None else proposals

    def _skip_when_compiling(self, site: BreakSite) -> Proposal | None:
        """Do work that no tensor depends on only in eager mode."""
        source, statement = site.source, site.statement
        function = None if source is None else source.function_at(site.line)
        if source is None or statement is None or function is None or _side_call(site) is None:
            return None
        group = dependent_statements(source, statement, function)
        changes = None if group is None else guard_statements(source, group)
        if changes is None:
            return None
        extra = source.insert_import("import torch") if source.module_alias("torch") != "torch" else None
        note = "Compiled code no longer does it; eager code does."
        return self.rewrite("Do it only in eager mode", *changes, extra, changes=note)

    def hints(self, site: BreakSite) -> tuple[str, ...]:
        """What you can do by hand."""
        name = _function_name(site)
        topic = (
            "sort"
            if name in ("sorted", "max", "min")
            else name.partition(".")[0].replace("pathlib", "os").replace("open", "os")
        )
        if topic in _HINTS:
            return _HINTS[topic]
        return (
            "Move it out of the compiled function: do it before the call and pass the result in, or do it after the call.",
            "Or put it under `if not torch.compiler.is_compiling():` if only eager runs need it.",
        )


def _function_name(site: BreakSite) -> str:
    """The function that torch could not trace, as the statement names it."""
    if site.source is None:
        return ""
    side, source = _side_call(site), site.source
    if side is not None:
        return full_name(source, side.func)
    for call in site.calls():
        name = full_name(source, call.func)
        module = name.partition(".")[0] in sys.stdlib_module_names and is_imported(source, call.func)
        if module or (hasattr(builtins, name) and site.mentions(f"`{name}`", f"{name}()")):
            return name
    ordering = [call for call in site.calls("sorted", "max", "min") if site.mentions("sort", "max", "min")]
    return full_name(source, ordering[0].func) if ordering else ""


def _side_call(site: BreakSite) -> ast.Call | None:
    if site.source is None:
        return None
    for call in site.calls():
        name = full_name(site.source, call.func)
        # Many lines that break for other reasons also call str or repr.
        if has_side_effect(site.source, call) and (name not in ("str", "repr") or site.mentions(f"`{name}`", f"{name}()")):
            return call
    return None


def _translations(site: BreakSite) -> Iterator[tuple[str, ast.expr, str, str]]:
    """Calls in the statement with a torch equivalent: title, call, replacement, note on what changes."""
    source = site.source
    if source is None:
        return
    for call in site.calls():
        name, first = full_name(source, call.func), argument(call, 0, "")
        if first is None or any(isinstance(item, ast.Starred) for item in call.args):
            continue
        if name == "copy.deepcopy" and len(call.args) == 1:
            yield from _copies(source, call, first, site.line)
        elif name == "pow" and len(call.args) == 2:
            base, power = (
                source.segment(item) if isinstance(item, ast.Constant) else grouped(source, item) for item in call.args
            )
            yield "Write the power as an operator", call, f"{base} ** {power}", ""
        elif name in ("max", "min") and len(call.args) == 1 and [item.arg for item in call.keywords] == ["key"]:
            order = ", reverse=True" if name == "max" else ""
            texts = f"{source.segment(first)}, key={source.segment(call.keywords[0].value)}"
            yield f"Sort, and take the first instead of {name}", call, f"sorted({texts}{order})[0]", _EMPTY_NOTE
        elif name in ("heapq.nlargest", "heapq.nsmallest") and len(call.args) == 2:
            order = ", reverse=True" if name.endswith("largest") else ""
            texts = ", ".join([source.segment(call.args[1]), *(source.segment(item) for item in call.keywords)])
            yield "Sort, and take the first elements", call, f"sorted({texts}{order})[:{source.segment(first)}]", ""
        elif name == "sorted" and len(call.args) == 1 and not call.keywords and "Tensor" in site.cause.explanation:
            yield "Sort with torch", call, f"list(torch.sort({source.segment(first)}).values)", ""
        elif name.startswith("math.") and name.removeprefix("math.") in _MATH_FUNCTIONS and len(call.args) == 1:
            if not site.mentions("_local_scalar") or _is_size(first):
                continue
            new = f"torch.{name.removeprefix('math.')}({_detached(source, first)})"
            note = "The result is a zero-dimensional tensor in the tensor's precision instead of a Python number."
            yield f"Write {name} as torch.{name.removeprefix('math.')}", call, new, note


def _copies(source: SourceFile, call: ast.Call, first: ast.expr, line: int) -> Iterator[tuple[str, ast.expr, str, str]]:
    """Replace a copy of a tensor, or of a list or dictionary of tensors that the function itself creates."""
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
            note = "Gradients flow through the copy to the original."
            yield "Clone the tensor, with its gradient", call, f"{text}.clone()", note


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is a number known at compile time: a literal, or part of a shape."""
    inner = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Constant) or last_name(inner) in ("shape", "size", "ndim", "numel", "dim", "len")


def _detached(source: SourceFile, node: ast.expr) -> str:
    text = grouped(source, node)
    return text if text.endswith(".detach()") else f"{text}.detach()"
