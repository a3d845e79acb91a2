"""One call of a sequence: its inputs, its label and the state in which it is made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_tensor, map_tensors
from compile_inspect.errors import TargetError
from compile_inspect.target import Inputs
from compile_inspect.torch_private import dynamo_state


@dataclass(frozen=True)
class Call:
    """Inputs, and the state in which the target is called with them.

    `around` returns a context manager for the call: `torch.no_grad`, or `lambda: temporary_attribute(model, "scale", 2)`.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    around: Callable[[], AbstractContextManager[Any]] | None = None

    @property
    def inputs(self) -> Inputs:
        """Positional and keyword arguments."""
        return self.args, self.kwargs

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Enter the state in which the call is made."""
        with contextlib.nullcontext() if self.around is None else self.around():
            yield

    def leaves(self) -> list[Any]:
        """Every tensor and value in the inputs, in order."""
        leaves, _ = torch_private.flatten((self.args, dict(self.kwargs)))
        return list(leaves)


def as_calls(inputs: Sequence[Inputs | Call]) -> tuple[Call, ...]:
    """Convert a sequence of calls and bare inputs to calls.

    >>> as_calls([((1,), {"k": 2})])
    (Call(args=(1,), kwargs={'k': 2}, label='', around=None),)
    """
    calls = []
    for item in inputs:
        if isinstance(item, Call):
            calls.append(item)
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], tuple) and isinstance(item[1], Mapping):
            calls.append(Call(item[0], item[1]))
        else:
            raise TargetError(f"inputs are pairs of a tuple and a mapping, such as ((x,), {{}}), not {type(item).__name__}")
    if not calls:
        raise TargetError("a forecast needs at least one call")
    return tuple(calls)


def clone_inputs(inputs: Inputs) -> Inputs:
    """Copy inputs so that a run may change them, with the marks for Dynamo's dynamic dimensions."""
    bases: dict[int, Any] = {}
    return map_tensors(inputs, lambda tensor: dynamo_state.copy_marks(tensor, _copy(tensor, bases)))


def _copy(tensor: Any, bases: dict[int, Any]) -> Any:
    """A copy that Dynamo treats like the tensor: a view stays a view of a base of the same size; others do not become views."""
    import torch

    base = tensor._base if _is_plain(tensor) and tensor._is_view() else None
    with torch.no_grad():
        if base is not None and _is_plain(base) and base.dtype == tensor.dtype:
            if id(base) not in bases:
                bases[id(base)] = _empty_copy(base)
            with contextlib.suppress(RuntimeError):  # the view extends beyond its base
                offset = tensor.storage_offset() - base.storage_offset()
                copy = bases[id(base)].as_strided(tensor.shape, tensor.stride(), offset)
                # torch refuses to copy into a view that contains an element several times.
                _ = bases[id(base)].copy_(base) if _has_repeated_elements(tensor) else copy.copy_(tensor)
                return copy.requires_grad_(tensor.requires_grad)
        if base is None and _is_plain(tensor) and not _has_repeated_elements(tensor):
            return _empty_copy(tensor).copy_(tensor).requires_grad_(tensor.requires_grad)
    return clone_tensor(tensor)


def _is_plain(tensor: Any) -> bool:
    import torch

    strided = type(tensor) is torch.Tensor and tensor.layout is torch.strided
    return strided and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def _empty_copy(tensor: Any) -> Any:
    import torch

    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _has_repeated_elements(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


@contextlib.contextmanager
def temporary_attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of an object inside the block.

    >>> class Settings:
    ...     scale = 1
    >>> with temporary_attribute(Settings, "scale", 2):
    ...     print(Settings.scale)
    2
    >>> Settings.scale
    1
    """
    own = name in vars(owner) or name in getattr(owner, "_buffers", ()) or name in getattr(owner, "_parameters", ())
    before = getattr(owner, name) if own else None
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def describe(leaf: Any) -> str:
    """A short description of a tensor or value: `float32[8, 16] cpu`."""
    if torch_private.is_tensor(leaf):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)} {leaf.device}"
    return f"{leaf!r:.40}"
