"""Inputs of other sizes, made from the example inputs.

    {"batch": [1, 8, 64]}              dimension 0 of every tensor that has the batch size of the first
    {"tokens=0:1": [16, 32]}           dimension 1 of the first argument
    {"tokens=0:1,mask:1": [16, 32]}    that, and dimension 1 of the keyword argument `mask`

Rows are repeated in turn or left out: values stay in their range, so that indices stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from compile_inspect import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.variants import Task

FURTHER = "further"
_FORMS = "write batch=1,8,64 for the batch size, or NAME=ARGUMENT:DIMENSION=SIZES, such as tokens=0:1=16,32, for any other"

Sweep = Mapping[str, Sequence[int]] | str
Place = tuple[str, int]


@dataclass(frozen=True)
class Axis:
    """A named size, where it is in the inputs (empty: the batch), and the values it takes."""

    name: str
    places: tuple[Place, ...]
    sizes: tuple[int, ...]


def parse_sweep(texts: Sequence[str]) -> dict[str, list[int]]:
    """What `--sweep` was given, once or several times.

    >>> parse_sweep(["batch=1,8,64", "tokens=0:1=16,32"])
    {'batch': [1, 8, 64], 'tokens=0:1': [16, 32]}
    """
    found: dict[str, list[int]] = {}
    for text in texts:
        key, separator, values = text.rpartition("=")
        words = [word.strip() for word in values.split(",")]
        if not separator or not key or not all(word.isdecimal() for word in words):
            raise TargetError(f"--sweep {text!r} does not say which sizes: {_FORMS}")
        found[key] = [int(word) for word in words]
    return found


def axes_of(sweep: Mapping[str, Sequence[int]]) -> tuple[Axis, ...]:
    """The axes a sweep names.

    >>> axes_of({"tokens=0:1,mask:-1": [4]})
    (Axis(name='tokens', places=(('0', 1), ('mask', -1)), sizes=(4,)),)
    """
    axes = []
    for key, sizes in sweep.items():
        name, separator, where = key.partition("=")
        if not separator and name != "batch":
            raise TargetError(f"where {name!r} is in the inputs is not told: {_FORMS}")
        if not sizes or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise TargetError(f"the sizes of {name!r} are {list(sizes)!r}: give whole numbers from 1")
        axes.append(Axis(name, tuple(_place(key, text) for text in where.split(",")) if separator else (), tuple(sizes)))
    if len({axis.name for axis in axes}) < len(axes):
        raise TargetError(f"a sweep names {', '.join(axis.name for axis in axes)}: give every axis a name of its own")
    return tuple(axes)


def _place(key: str, text: str) -> Place:
    argument, separator, dimension = text.strip().partition(":")
    if not separator or not argument or not dimension.lstrip("-").isdecimal():
        raise TargetError(f"{text!r} in {key!r} is no place: {_FORMS}")
    return argument, int(dimension)


def points(task: Task, sweep: Sweep | None) -> Iterator[tuple[dict[str, int], Task]]:
    """The task at every size of a sweep; with several axes, at all combinations. Without one, the task itself.

    `sweep="further"` takes the task's own further inputs instead, after the first.
    """
    if sweep is None:
        yield {}, task
    elif isinstance(sweep, str):
        if sweep != FURTHER:
            raise TargetError(f"sweep is {sweep!r}: give a mapping such as {{'batch': [1, 8, 64]}}, or 'further'")
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
    """The task with inputs of another size along one axis; a size of 0 is possible here."""
    if not axis.places:
        args, kwargs = _resize_all((task.args, dict(task.kwargs)), 0, size, f"the sweep over {axis.name!r}")
        return replace(task, args=args, kwargs=kwargs, further=())
    args, kwargs = list(task.args), dict(task.kwargs)
    for argument, dimension in axis.places:
        told = f"{axis.name}={argument}:{dimension}"
        if argument.isdecimal() and int(argument) < len(args):
            args[int(argument)] = _resize_all(args[int(argument)], dimension, size, told)
        elif argument in kwargs:
            kwargs[argument] = _resize_all(kwargs[argument], dimension, size, told)
        else:
            known = [*map(str, range(len(args))), *kwargs]
            raise TargetError(f"{told} names argument {argument!r}; the inputs have {', '.join(known) or 'none'}")
    return replace(task, args=tuple(args), kwargs=kwargs, further=())


def _resize_all(value: Any, dimension: int, size: int, told: str) -> Any:
    """Resize every tensor in a nest that has, at a dimension, the size of the first that has this dimension."""
    leaves, structure = torch_private.flatten(value)
    has: Callable[[Any], bool] = lambda leaf: torch_private.is_tensor(leaf) and -leaf.dim() <= dimension < leaf.dim()  # noqa: E731
    first = next((leaf for leaf in leaves if has(leaf)), None)
    if first is None:
        raise TargetError(f"{told} finds no tensor with a dimension {dimension}: {_FORMS}")
    old = first.shape[dimension]
    if old == 0:
        raise TargetError(f"{told} finds a tensor without elements, which cannot be repeated: give inputs of size 1 or more")
    resized = [_resize(leaf, dimension, size) if has(leaf) and leaf.shape[dimension] == old else leaf for leaf in leaves]
    return torch_private.unflatten(resized, structure)


def _resize(tensor: Any, dimension: int, size: int) -> Any:
    import torch

    indices = torch.arange(size, device=tensor.device) % tensor.shape[dimension]
    return tensor.detach().index_select(dimension, indices).requires_grad_(tensor.requires_grad)


def describe_inputs(task: Task) -> tuple[str, ...]:
    """Every input tensor in short: `float32[8, 16] cpu`."""
    leaves, _ = torch_private.flatten((task.args, dict(task.kwargs)))
    return tuple(
        f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)} {leaf.device}"
        if torch_private.is_tensor(leaf)
        else f"{leaf!r:.40}"
        for leaf in leaves
    )
