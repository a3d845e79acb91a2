"""Translations of numpy functions that torch cannot trace into ones that it can, or into torch functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from compile_inspect.fixes.expressions import argument, grouped
from compile_inspect.fixes.source import SourceFile

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}
_WITHOUT_NAN = {"nansum": ("sum", "0"), "nanprod": ("prod", "1"), "nanmax": ("max", "-{}.inf"), "nanmin": ("min", "{}.inf")}


@dataclass(frozen=True)
class NumpyCall:
    """A call to a numpy function."""

    source: SourceFile
    node: ast.Call
    numpy: str
    """The name of numpy in the file, such as `np`."""
    name: str
    """The function without that prefix, such as `linalg.norm`."""

    def text(self, position: int, name: str) -> str | None:
        """The text of the argument for a parameter; None if there is none."""
        value = argument(self.node, position, name)
        return None if value is None else self.source.segment(value)

    def grouped(self, node: ast.expr) -> str:
        """The text of an expression, in parentheses if an operator after it needs them."""
        return grouped(self.source, node)

    def has_exactly(self, count: int) -> bool:
        """Whether the call has exactly this many arguments, all positional."""
        return len(self.node.args) == count and not self.node.keywords and not self.has_others_than()

    def has_others_than(self, *names: str) -> bool:
        """Whether the call has starred arguments, or keyword arguments other than these."""
        return any(item.arg not in names for item in self.node.keywords) or any(
            isinstance(item, ast.Starred) for item in self.node.args
        )

    def replace_first(self, first: str) -> str:
        """The text of all arguments, with the first one replaced."""
        texts = [self.source.segment(item) for item in [*self.node.args[1:], *self.node.keywords]]
        return ", ".join([first, *texts])


Translator = Callable[[NumpyCall], str | None]


def translator_of(name: str) -> Translator | None:
    """The translator for a numpy function; None if there is none."""
    if name in _TRANSLATORS:
        return _TRANSLATORS[name]
    function, _, method = name.partition(".")
    if method == "reduce" and function in _REDUCTIONS:
        return lambda call: _along_first(call, f"{call.numpy}.{_REDUCTIONS[function]}")
    if method == "accumulate" and function in _SCANS:
        return lambda call: _along_first(call, f"{call.numpy}.{_SCANS[function]}")
    if method == "accumulate" and function in ("maximum", "minimum"):
        return lambda call: _scan(call, f"torch.cum{function[:3]}")
    if method == "outer":
        return lambda call: _outer(call, f"{call.numpy}.{function}")
    return None


def _along_first(call: NumpyCall, function: str) -> str | None:
    """Ufunc methods reduce along the first axis by default; the numpy functions reduce along all axes."""
    values, axis = call.text(0, "array"), call.text(1, "axis")
    if values is None or len(call.node.args) not in (1, 2) or call.has_others_than("axis", "keepdims"):
        return None
    return (
        f"{function}({call.replace_first(values)})" if axis is not None else f"{function}({call.replace_first(values)}, axis=0)"
    )


def _outer(call: NumpyCall, function: str) -> str | None:
    if not call.has_exactly(2):
        return None
    return f"{function}({call.grouped(call.node.args[0])}[:, None], {call.text(1, 'B')})"


def _scan(call: NumpyCall, function: str) -> str | None:
    values, axis = call.text(0, "array"), call.text(1, "axis") or "0"
    if values is None or len(call.node.args) not in (1, 2) or call.has_others_than("axis"):
        return None
    return f"{function}({_tensor(call, 0)}, {axis}).values.numpy()"


def _tensor(call: NumpyCall, position: int) -> str:
    """An argument as a tensor: the tensor that `.numpy()` was called on, or a conversion."""
    node = call.node.args[position]
    direct = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
    if direct and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        return call.source.segment(node.func.value)
    return f"torch.as_tensor({call.source.segment(node)})"


def _select(call: NumpyCall) -> str | None:
    """Nest one `where` per condition; conditions and choices must be list literals."""
    conditions, choices = argument(call.node, 0, "condlist"), argument(call.node, 1, "choicelist")
    if not isinstance(conditions, ast.List) or not isinstance(choices, ast.List) or len(conditions.elts) != len(choices.elts):
        return None
    text = call.text(2, "default") or "0"
    for condition, choice in zip(reversed(conditions.elts), reversed(choices.elts), strict=True):
        text = f"{call.numpy}.where({call.source.segment(condition)}, {call.source.segment(choice)}, {text})"
    return text if conditions.elts else None


def _polyval(call: NumpyCall) -> str | None:
    """Apply Horner's rule; the coefficients must be a literal."""
    coefficients, at = (*call.node.args, None, None)[:2]
    if not isinstance(coefficients, (ast.List, ast.Tuple)) or not isinstance(at, ast.Name) or len(coefficients.elts) < 2:
        return None
    parts = [(call.source.segment if isinstance(item, ast.Constant) else call.grouped)(item) for item in coefficients.elts]
    text = f"{parts[0]} * {at.id} + {parts[1]}"
    for part in parts[2:]:
        text = f"({text}) * {at.id} + {part}"
    return text


def _without_nan(call: NumpyCall) -> str | None:
    function, fill = _WITHOUT_NAN[call.name]
    values = call.text(0, "a")
    if values is None or not call.node.args or call.has_others_than("axis", "keepdims"):
        return None
    filled = f"{call.numpy}.where({call.numpy}.isnan({values}), {fill.format(call.numpy)}, {values})"
    return f"{call.numpy}.{function}({call.replace_first(filled)})"


def _digitize(call: NumpyCall) -> str | None:
    """Use `right=True`, because torch closes the other side of each bin."""
    if not call.has_exactly(2):
        return None
    return f"torch.bucketize({_tensor(call, 0)}, {_tensor(call, 1)}, right=True).numpy()"


def _isin(call: NumpyCall) -> str | None:
    if len(call.node.args) != 2 or call.has_others_than("invert", "assume_unique"):
        return None
    named = "".join(f", {call.source.segment(item)}" for item in call.node.keywords)
    return f"torch.isin({_tensor(call, 0)}, {_tensor(call, 1)}{named}).numpy()"


def _nanmean(call: NumpyCall) -> str | None:
    if len(call.node.args) != 1 or call.has_others_than("axis"):
        return None
    axis = call.text(1, "axis")
    return f"torch.nanmean({_tensor(call, 0)}" + (")" if axis is None else f", dim={axis}).numpy()")


def _trapezoid(call: NumpyCall) -> str | None:
    if len(call.node.args) not in (1, 2) or call.has_others_than("axis", "dx"):
        return None
    points = f", {_tensor(call, 1)}" if len(call.node.args) == 2 else ""
    texts = {"dim" if item.arg == "axis" else item.arg: call.source.segment(item.value) for item in call.node.keywords}
    named = "".join(f", {name}={text}" for name, text in texts.items())
    return f"torch.trapezoid({_tensor(call, 0)}{points}{named}).numpy()"


def _pad(call: NumpyCall) -> str | None:
    """Pad with a constant; the widths must be a literal with one pair per dimension."""
    widths, mode = argument(call.node, 1, "pad_width"), argument(call.node, 2, "mode")
    pairs = widths.elts if call.node.args and isinstance(widths, (ast.Tuple, ast.List)) else []
    if (mode is not None and getattr(mode, "value", None) != "constant") or call.has_others_than(
        "pad_width", "mode", "constant_values"
    ):
        return None
    if not pairs or not all(isinstance(pair, (ast.Tuple, ast.List)) and len(pair.elts) == 2 for pair in pairs):
        return None
    flat = ", ".join(call.source.segment(item) for pair in reversed(pairs) for item in getattr(pair, "elts", ()))
    value = next((item.value for item in call.node.keywords if item.arg == "constant_values"), None)
    if isinstance(value, (ast.Tuple, ast.List)):
        return None
    filled = "" if value is None else f", value={call.source.segment(value)}"
    return f"torch.nn.functional.pad({_tensor(call, 0)}, ({flat}){filled}).numpy()"


def _bincount(call: NumpyCall) -> str | None:
    length = call.text(2, "minlength")
    if length is None or len(call.node.args) != 1 or call.has_others_than("minlength"):
        return None
    return f"torch.nn.functional.one_hot({_tensor(call, 0)}, {length}).sum(0).numpy()"


def _errstate(call: NumpyCall) -> str | None:
    in_with = isinstance(call.source.parents.get(call.node), ast.withitem)
    return "contextlib.nullcontext()" if in_with else None


def _ndindex(call: NumpyCall) -> str | None:
    """Replace the indices of a shape by a product of ranges."""
    arguments = call.node.args
    if call.node.keywords or not arguments:
        return None
    if len(arguments) == 1:
        shape = arguments[0].value if isinstance(arguments[0], ast.Starred) else arguments[0]
        is_shape = isinstance(arguments[0], ast.Starred) or (isinstance(shape, ast.Attribute) and shape.attr == "shape")
        return f"itertools.product(*map(range, {call.source.segment(shape)}))" if is_shape else None
    if any(isinstance(item, ast.Starred) for item in arguments):
        return None
    return f"itertools.product({', '.join(f'range({call.source.segment(item)})' for item in arguments)})"


_TRANSLATORS: dict[str, Translator] = {
    **dict.fromkeys(_WITHOUT_NAN, _without_nan),
    "select": _select,
    "polyval": _polyval,
    "partition": lambda call: f"{call.numpy}.sort({call.text(0, 'a')})" if call.has_exactly(2) else None,
    "argpartition": lambda call: f"{call.numpy}.argsort({call.text(0, 'a')})" if call.has_exactly(2) else None,
    "ediff1d": lambda call: f"{call.numpy}.diff({call.numpy}.ravel({call.text(0, 'ary')}))" if call.has_exactly(1) else None,
    "digitize": _digitize,
    "isin": _isin,
    "nanmean": _nanmean,
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "pad": _pad,
    "bincount": _bincount,
    "errstate": _errstate,
    "ndindex": _ndindex,
}

_SORTING_NOTE = "All values are sorted, which takes a little longer; except at the given index, their order differs."
CHANGES = {
    "nanmax": "If all values are NaN, the result is infinite instead of NaN.",
    "nanmin": "If all values are NaN, the result is infinite instead of NaN.",
    "partition": _SORTING_NOTE,
    "argpartition": _SORTING_NOTE,
    "bincount": "A value of `minlength` or more is an error instead of a longer result.",
    "errstate": "In eager mode, numpy warns as if the line were missing; compiled code never warned.",
    "digitize": "The bins must increase; decreasing bins, which numpy accepts, are not detected.",
}
