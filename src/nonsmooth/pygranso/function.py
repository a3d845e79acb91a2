"""PyGRANSO's combined function as a `Problem`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nonsmooth.errors import ProblemError
from nonsmooth.problem import Problem
from nonsmooth.pygranso.pygransoStruct import pygransoStruct
from nonsmooth.pygranso.variables import Unknowns


def problem(combined_fn: Callable[[Any], Any], unknowns: Unknowns, *, gradients: bool) -> Problem:
    """The problem for a combined function; with `gradients` the function returns six values instead of three."""
    if not callable(combined_fn):
        raise ProblemError(f"combined_fn must be a function, not {type(combined_fn).__name__}")
    if gradients:
        return Problem(lambda x: with_gradients(combined_fn, x, unknowns.size), gradients=True)
    return Problem(lambda x: values(combined_fn, x))


def values(combined_fn: Callable[[Any], Any], x: Any) -> tuple[Any, list[Tensor] | None, list[Tensor] | None]:
    """f, ci and ce, the constraints as lists of tensors.

    >>> values(lambda X: [X.x.sum(), pygransoStruct(c=X.x), None], {"x": torch.ones(2)})
    (tensor(2.), [tensor([1., 1.])], None)
    """
    answer = combined_fn(pygransoStruct(**x) if isinstance(x, Mapping) else x)
    if not isinstance(answer, list | tuple):
        return answer, None, None
    if len(answer) != 3:
        hint = "; with six values, set globalAD=False" if len(answer) == 6 else ""
        raise ProblemError(f"combined_fn must return [f, ci, ce], not {len(answer)} values{hint}")
    return answer[0], parts(answer[1], "ci"), parts(answer[2], "ce")


def with_gradients(combined_fn: Callable[[Any], Any], x: Any, size: int) -> tuple[Any, ...]:
    """f, its gradient, ci, its Jacobian, ce and its Jacobian, with one row per constraint as `minimize` requires."""
    argument = pygransoStruct(**{name: value.detach() for name, value in x.items()}) if isinstance(x, Mapping) else x
    with torch.enable_grad():  # the function may use autograd for some of its gradients
        answer = combined_fn(argument)
    if not isinstance(answer, list | tuple) or len(answer) != 6:
        raise ProblemError("with globalAD=False combined_fn must return [f, f_grad, ci, ci_grad, ce, ce_grad]")
    f, f_gradient, ci, ci_gradients, ce, ce_gradients = answer
    objective, gradient = _tensor(f, "f"), _tensor(f_gradient, "f_grad")
    if gradient.numel() != size:
        raise ProblemError(f"f_grad must have {size} numbers, not shape {tuple(gradient.shape)}")
    result: list[Any] = [objective, gradient.reshape(-1)]
    for name, block, columns in (("ci", ci, ci_gradients), ("ce", ce, ce_gradients)):
        pieces = parts(block, name)
        flat = None if pieces is None else torch.cat([piece.detach().cpu().double().reshape(-1) for piece in pieces])
        rows = None if flat is None or flat.numel() == 0 else _rows(columns, f"{name}_grad", size, flat.numel())
        result += [None, None] if rows is None else [flat, rows]
    return tuple(result)


def parts(block: Any, name: str) -> list[Tensor] | None:
    """A block of constraints in any accepted form, as a list of tensors; None if there are none.

    >>> parts(pygransoStruct(a=torch.zeros(2), b=1.0), "ci")
    [tensor([0., 0.]), tensor(1., dtype=torch.float64)]
    >>> parts(pygransoStruct(), "ci") is None
    True
    """
    if block is None:
        return None
    if isinstance(block, Mapping):
        pieces = list(block.values())
    elif isinstance(block, list | tuple):
        pieces = list(block)
    elif isinstance(block, Tensor | np.ndarray | int | float | np.number):
        pieces = [block]
    elif hasattr(block, "__dict__"):
        pieces = list(vars(block).values())
    else:
        raise ProblemError(f"{name} must be a pygransoStruct, a tensor, a list or dict of tensors, or None, not {block!r}")
    tensors = [piece if isinstance(piece, Tensor) else _tensor(piece, name) for piece in pieces if piece is not None]
    return tensors or None


def _tensor(value: Any, name: str) -> Tensor:
    try:
        return torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ProblemError(f"{name} must be a tensor, an array or a number, not {type(value).__name__}") from error


def _rows(value: Any, name: str, size: int, count: int) -> Tensor:
    columns = _tensor(value, name).detach()
    if tuple(columns.shape) == (size, count):
        return columns.T
    if count == 1 and columns.numel() == size:
        return columns.reshape(1, size)
    raise ProblemError(f"{name} must have shape ({size}, {count}), one column per constraint, not {tuple(columns.shape)}")
