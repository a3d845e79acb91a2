"""Create inputs of other sizes from the example inputs.

    {"batch": [1, 8, 64]}              dimension 0 of every tensor with the same batch size as the first
    {"tokens=0:1": [16, 32]}           dimension 1 of the first argument
    {"tokens=0:1,mask:1": [16, 32]}    also dimension 1 of the keyword argument `mask`

Rows are repeated in turn or omitted, so values stay in their range and indices stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from compile_inspect import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.variants import Task

FURTHER = "further"
_SYNTAX = "write batch=1,8,64 for the batch size, or NAME=ARGUMENT:DIMENSION=SIZES, such as tokens=0:1=16,32, for any other"

Sweep = Mapping[str, Sequence[int]] | str
AxisPosition = tuple[str, int]


@dataclass(frozen=True)
class Axis:
    """A named size, its positions in the inputs (empty for the batch size), and its values."""

    name: str
    positions: tuple[AxisPosition, ...]
    sizes: tuple[int, ...]


def parse_sweep(texts: Sequence[str]) -> dict[str, list[int]]:
    """Parse the values of `--sweep`, which can be given several times.

    >>> parse_sweep(["batch=1,8,64", "tokens=0:1=16,32"])
    {'batch': [1, 8, 64], 'tokens=0:1': [16, 32]}
    """
    sizes: dict[str, list[int]] = {}
    for text in texts:
        key, separator, values = text.rpartition("=")
        words = [word.strip() for word in values.split(",")]
        if not separator or not key or not all(word.isdecimal() for word in words):
            raise TargetError(f"--sweep {text!r} has no sizes: {_SYNTAX}")
        sizes[key] = [int(word) for word in words]
    return sizes


def axes_of(sweep: Mapping[str, Sequence[int]]) -> tuple[Axis, ...]:
    """The axes of a sweep.

    >>> axes_of({"tokens=0:1,mask:-1": [4]})
    (Axis(name='tokens', positions=(('0', 1), ('mask', -1)), sizes=(4,)),)
    """
    axes = []
    for key, sizes in sweep.items():
        name, separator, positions = key.partition("=")
        if not separator and name != "batch":
            raise TargetError(f"the sweep does not specify where {name!r} is in the inputs: {_SYNTAX}")
        if not sizes or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise TargetError(f"the sizes of {name!r} are {list(sizes)!r}: use integers of at least 1")
        parsed = tuple(_parse_position(key, text) for text in positions.split(",")) if separator else ()
        axes.append(Axis(name, parsed, tuple(sizes)))
    if len({axis.name for axis in axes}) < len(axes):
        raise TargetError(f"a sweep names {', '.join(axis.name for axis in axes)}: give each axis a different name")
    return tuple(axes)


def _parse_position(key: str, text: str) -> AxisPosition:
    argument, separator, dimension = text.strip().partition(":")
    if not separator or not argument or not dimension.lstrip("-").isdecimal():
        raise TargetError(f"{text!r} in {key!r} is not a position: {_SYNTAX}")
    return argument, int(dimension)


def points(task: Task, sweep: Sweep | None) -> Iterator[tuple[dict[str, int], Task]]:
    """The task at each size of a sweep, or at all combinations of several axes; without a sweep, the task itself.

    `sweep="further"` uses all inputs of the task instead: its example inputs, then its further ones.
    """
    if sweep is None:
        yield {}, task
    elif isinstance(sweep, str):
        if sweep != FURTHER:
            raise TargetError(f"sweep is {sweep!r}: pass a mapping such as {{'batch': [1, 8, 64]}}, or 'further'")
        if not task.further:
            raise TargetError("sweep='further' needs a Target with further inputs: Target(function, args, further=…)")
        for index, (args, kwargs) in enumerate(task.inputs()):
            yield {"inputs": index}, replace(task, args=args, kwargs=kwargs, further=())
    else:
        axes = axes_of(sweep)
        for sizes in product(*(axis.sizes for axis in axes)):
            point = task
            for axis, size in zip(axes, sizes, strict=True):
                point = resized(point, axis, size)
            yield {axis.name: size for axis, size in zip(axes, sizes, strict=True)}, point


def resized(task: Task, axis: Axis, size: int) -> Task:
    """The task with a different input size along one axis; here the size may be 0."""
    if not axis.positions:
        args, kwargs = _resize_all((task.args, dict(task.kwargs)), 0, size, f"the sweep over {axis.name!r}")
        return replace(task, args=args, kwargs=kwargs, further=())
    args, kwargs = list(task.args), dict(task.kwargs)
    for argument, dimension in axis.positions:
        description = f"{axis.name}={argument}:{dimension}"
        if argument.isdecimal() and int(argument) < len(args):
            args[int(argument)] = _resize_all(args[int(argument)], dimension, size, description)
        elif argument in kwargs:
            kwargs[argument] = _resize_all(kwargs[argument], dimension, size, description)
        else:
            known = [*map(str, range(len(args))), *kwargs]
            raise TargetError(f"{description} names argument {argument!r}; the inputs have {', '.join(known) or 'none'}")
    return replace(task, args=tuple(args), kwargs=kwargs, further=())


def _resize_all(value: Any, dimension: int, size: int, description: str) -> Any:
    """Resize all nested tensors whose size in this dimension is that of the first tensor that has the dimension."""
    leaves, structure = torch_private.flatten(value)

    def has_dimension(leaf: Any) -> bool:
        return torch_private.is_tensor(leaf) and -leaf.dim() <= dimension < leaf.dim()

    first = next((leaf for leaf in leaves if has_dimension(leaf)), None)
    if first is None:
        raise TargetError(f"{description} matches no tensor with a dimension {dimension}: {_SYNTAX}")
    old = first.shape[dimension]
    if old == 0:
        raise TargetError(f"{description} matches an empty tensor, which cannot be repeated: use inputs of size 1 or more")
    new_leaves = [
        _resize(leaf, dimension, size) if has_dimension(leaf) and leaf.shape[dimension] == old else leaf for leaf in leaves
    ]
    return torch_private.unflatten(new_leaves, structure)


def _resize(tensor: Any, dimension: int, size: int) -> Any:
    import torch

    indices = torch.arange(size, device=tensor.device) % tensor.shape[dimension]
    return tensor.detach().index_select(dimension, indices).requires_grad_(tensor.requires_grad)


def describe_inputs(task: Task) -> tuple[str, ...]:
    """A short description of each input: `float32[8, 16] cpu`."""
    leaves, _ = torch_private.flatten((task.args, dict(task.kwargs)))
    return tuple(
        f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)} {leaf.device}"
        if torch_private.is_tensor(leaf)
        else f"{leaf!r:.40}"
        for leaf in leaves
    )
