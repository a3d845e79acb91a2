"""Variants that are right and round otherwise than eager: sums in another order, wider intermediate results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from compile_inspect.variants import Prepared, Step, Task, Variant

aten = torch.ops.aten


def _wide(tensor: Any) -> Any:
    return tensor.float() if torch.is_tensor(tensor) and tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _summed(x: Tensor, dim: list[int] | None = None, keepdim: bool = False, **choices: Any) -> Any:
    """A sum in the opposite order, one element after the other."""
    dims = [axis % x.dim() for axis in dim or range(x.dim())]
    if not x.is_floating_point() or choices or not dims:
        return NotImplemented
    result = _wide(x)
    for axis in dims:
        if not result.shape[axis]:
            return NotImplemented
        result = result.flip(axis).cumsum(axis).select(axis, -1).unsqueeze(axis)
    result = result.to(x.dtype)
    return result if keepdim else result.reshape([size for axis, size in enumerate(x.shape) if axis not in dims])


def _product(a: Tensor, b: Tensor) -> Any:
    half = a.shape[1] // 2
    if not a.is_floating_point() or not half:
        return NotImplemented
    wide_a, wide_b = _wide(a), _wide(b)
    return (wide_a[:, half:] @ wide_b[half:] + wide_a[:, :half] @ wide_b[:half]).to(a.dtype)


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    wide = _wide(x)
    powers = (wide - wide.amax(dim, keepdim=True)).exp()
    return (powers / _summed(powers, [dim], True)).to(x.dtype)


def _mean(x: Tensor, dim: list[int] | None = None, keepdim: bool = False, **choices: Any) -> Any:
    total = _summed(_wide(x), dim, keepdim, **choices)
    return total if total is NotImplemented else (total * (total.numel() / x.numel())).to(x.dtype)


def _fused(x: Tensor, a: Tensor, b: Tensor, value: float = 1) -> Any:
    """One rounding instead of three, as with a fused multiply-add."""
    return (x.double() + value * a.double() * b.double()).to(x.dtype) if x.is_floating_point() else NotImplemented


REORDERED: dict[Any, Callable[..., Any]] = {
    aten.sum.dim_IntList: _summed,
    aten.sum.default: _summed,
    aten.mean.dim: _mean,
    aten.mean.default: _mean,
    aten.mm.default: _product,
    aten._softmax.default: _softmax,
    aten.addcmul.default: _fused,
}


@contextmanager
def reordered() -> Iterator[None]:
    class Reordering(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            other = REORDERED.get(func)
            result = NotImplemented if other is None else other(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {})) if result is NotImplemented else result

    with Reordering():  # type: ignore[no-untyped-call]
        yield


@dataclass(frozen=True)
class Reordered(Variant):
    """Eager with sums, products and softmax in another order."""

    @property
    def name(self) -> str:
        return "reordered"

    def build(self, task: Task) -> Prepared:
        def run(*args: Any, **kwargs: Any) -> Step:
            with reordered():
                return task.run(task.function, args, kwargs)

        return Prepared(self, run, None, 0.0)
