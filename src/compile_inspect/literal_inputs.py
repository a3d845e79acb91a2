"""Inputs written on a command line, as reports write them: `float32[16, 8], int64[16], 0.5, mask=bool[16]`."""

from __future__ import annotations

import ast
import re
from typing import Any

from compile_inspect.errors import TargetError

Inputs = tuple[tuple[Any, ...], dict[str, Any]]

SYNTAX_HINT = "write types and sizes such as 'float32[16, 8], int64[16], 0.5, mask=bool[16] @ cuda'"
# An index cannot be empty in Python, but the sizes of a scalar are.
_SCALAR = re.compile(r"(?<=\w)\[\s*\]")
_OBJECT_NAME = re.compile(r"^[^\[\](){}'\"=,]+:[A-Za-z_][\w.]*$")


def names_an_object(text: str) -> bool:
    """Whether inputs are named as `module:attribute`, rather than written out.

    >>> names_an_object("data.py:inputs"), names_an_object("float32[4, 3], scale=2"), names_an_object("{'x': 1}")
    (True, False, False)
    """
    return _OBJECT_NAME.match(text.strip()) is not None


def make_inputs(text: str) -> Inputs:
    """Make inputs from a description: random tensors of these dtypes and sizes, and Python values as written.

    Integers are 0 or 1, which are valid indices of every embedding table.

    >>> args, kwargs = make_inputs("float32[2, 3], float64[], 5, mask=bool[2]")
    >>> [tuple(getattr(item, "shape", ())) for item in args], args[2], kwargs["mask"].dtype
    ([(2, 3), (), ()], 5, torch.bool)
    """
    try:
        call = ast.parse(f"_({_SCALAR.sub('[()]', text)})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise TargetError(f"--inputs {text!r} cannot be read: name module:attribute, or {SYNTAX_HINT}") from error
    if not isinstance(call, ast.Call) or any(item.arg is None for item in call.keywords):
        raise TargetError(f"--inputs {text!r} cannot be read: name module:attribute, or {SYNTAX_HINT}")
    import torch

    # A separate generator: the generators of the process are the target's.
    generator = torch.Generator().manual_seed(0)
    args = tuple(_value(item, text, generator) for item in call.args)
    return args, {str(item.arg): _value(item.value, text, generator) for item in call.keywords}


def _value(node: ast.expr, text: str, generator: Any) -> Any:
    device = "cpu"
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Name(id=name)):
            node, device = left, name
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _tensor(node.value.id, node.slice, device, text, generator)
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [_value(item, text, generator) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    try:
        return ast.literal_eval(node)
    except ValueError:
        what = ast.unparse(node)
        raise TargetError(f"{what!r} in --inputs is not a value: name module:attribute, or {SYNTAX_HINT}") from None


def _tensor(name: str, sizes: ast.expr, device: str, text: str, generator: Any) -> Any:
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TargetError(f"{name!r} in --inputs is not a torch dtype: {SYNTAX_HINT}")
    try:
        shape = ast.literal_eval(sizes)
        shape = shape if isinstance(shape, tuple) else (shape,)
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=generator).bool().to(device)
        if dtype.is_floating_point or dtype.is_complex:
            # Small dtypes have no random number generator of their own.
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, dtype=wide, generator=generator).to(device, dtype)
        return torch.randint(0, 2, shape, generator=generator).to(device, dtype)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise TargetError(f"no tensor can be made for {name}[{ast.unparse(sizes)}] in --inputs {text!r}: {reason}") from error
