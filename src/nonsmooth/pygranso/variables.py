"""PyGRANSO's variables: shapes by name or a module, with the start as one flat column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nonsmooth.errors import OptionError, ProblemError
from nonsmooth.pygranso.settings import Settings


@dataclass(frozen=True)
class Unknowns:
    """The variables of a run: the start in the form of `minimize`, and the device and precision in which x is returned."""

    start: dict[str, Tensor] | nn.Module
    size: int
    device: torch.device
    dtype: torch.dtype

    def column(self, values: NDArray[np.float64]) -> Tensor:
        """Numbers as a column on the device and in the precision of the run.

        >>> prepare({"x": [2]}, Settings()).column(np.ones(2)).shape
        torch.Size([2, 1])
        """
        return self.tensor(values).reshape(-1, 1)

    def tensor(self, values: Any) -> Tensor:
        """Numbers as a tensor on the device and in the precision of the run."""
        return torch.tensor(values, dtype=self.dtype, device=self.device)


def prepare(var_spec: Any, settings: Settings) -> Unknowns:
    """Read the specification of the variables and combine it with the start."""
    if isinstance(var_spec, nn.Module):
        return _module(var_spec, settings)
    if isinstance(var_spec, Mapping):
        return _named(var_spec, settings)
    raise ProblemError(f"var_spec must be a dict of shapes by name or a module, not {type(var_spec).__name__}")


def _named(var_spec: Mapping[str, Any], settings: Settings) -> Unknowns:
    shapes = {str(name): _shape(name, shape) for name, shape in var_spec.items()}
    size = sum(math.prod(shape) for shape in shapes.values())
    if size == 0:
        raise ProblemError("var_spec has no variables: give at least one name with a shape, as in {'x': [3, 1]}")
    user_start = _user_start(settings, size)
    device = settings.device or (user_start.device if user_start is not None else torch.device("cpu"))
    if user_start is None:
        flat = torch.randn(size, dtype=settings.dtype, device=device)
    else:
        flat = user_start.to(device, settings.dtype)
    pieces = torch.split(flat, [math.prod(shape) for shape in shapes.values()])
    start = {name: piece.reshape(shape).clone() for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}
    return Unknowns(start, size, device, settings.dtype)


def _module(module: nn.Module, settings: Settings) -> Unknowns:
    """A module's parameters become the variables, in the precision and on the device of the run."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    size = sum(parameter.numel() for parameter in parameters)
    if size == 0:
        raise ProblemError("the module has no trainable parameters; there is nothing to minimize over")
    user_start = _user_start(settings, size)
    device = settings.device or parameters[0].device
    with torch.no_grad():
        for parameter in parameters:
            parameter.data = parameter.data.to(device, settings.dtype)
        if user_start is not None:
            pieces = torch.split(user_start.to(device, settings.dtype), [parameter.numel() for parameter in parameters])
            for parameter, piece in zip(parameters, pieces, strict=True):
                parameter.copy_(piece.reshape(parameter.shape))
    return Unknowns(module, size, device, settings.dtype)


def _user_start(settings: Settings, size: int) -> Tensor | None:
    value = settings.values.get("x0")
    if value is None:
        return None
    try:
        start = torch.as_tensor(value).detach().reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise OptionError(f"x0 must be a tensor of {size} numbers, not {type(value).__name__}") from error
    if start.numel() != size:
        raise OptionError(f"x0 must have {size} numbers, as many as there are variables, not shape {tuple(value.shape)}")
    if start.is_complex():
        raise OptionError("x0 is complex; use its real and imaginary parts as separate variables")
    return start


def _shape(name: object, shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int | np.integer) else shape
    try:
        result = tuple(int(size) for size in sizes)
    except (TypeError, ValueError):
        raise ProblemError(f"the shape of the variable {name!r} must be a list of whole numbers, not {shape!r}") from None
    if any(size < 0 for size in result):
        raise ProblemError(f"the shape of the variable {name!r} must not be negative, as in {shape!r}")
    return result
