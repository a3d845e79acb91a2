"""Sequences of calls from ranges of sizes and values.

    batch=1..64                   dimension 0 of every tensor that has the batch size of the first one
    batch=1,2,8,16..64:16         single sizes and ranges, in the order they are written
    seq=16..512:16                dimension 1 of every argument with the same size there as the first one
    tokens=0:1,mask:1=16..512     dimension 1 of the first argument and of the keyword argument `mask`
    steps=1..8                    the number passed for the parameter `steps`

Several ranges are combined in all ways; the last one varies fastest.
"""

from __future__ import annotations

import inspect as python_inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from compile_inspect import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.recompiles.calls import Call
from compile_inspect.target import Target
from compile_inspect.timing.sweep import Axis, axes_of, resized
from compile_inspect.torch_private import dynamo_state
from compile_inspect.variants import Task

SEQUENCE_NAMES = ("seq", "sequence", "length", "tokens")
"""Names that mean dimension 1 if no position is given."""
MAX_CALLS = 10_000
_RANGE = re.compile(r"^(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?::(?P<step>\d+))?$")
_SYNTAX = "write batch=1..64, seq=16..512:16, batch=1,2,8, or NAME=ARGUMENT:DIMENSION=SIZES"


@dataclass(frozen=True)
class Range:
    """A name, its positions in the inputs (empty if they must be inferred), and the values it takes."""

    name: str
    places: str
    values: tuple[int, ...]


def parse_range(text: str) -> Range:
    """Parse one range.

    >>> parse_range("batch=1..4")
    Range(name='batch', places='', values=(1, 2, 3, 4))
    >>> parse_range("tokens=0:1,mask:1=16..64:16,100")
    Range(name='tokens', places='0:1,mask:1', values=(16, 32, 48, 64, 100))
    """
    key, separator, words = text.rpartition("=")
    name, _, places = key.partition("=")
    if not separator or not name.strip() or not words.strip():
        raise TargetError(f"{text!r} is not a range: {_SYNTAX}")
    values = tuple(value for word in words.split(",") for value in _values(text, word.strip()))
    return Range(name.strip(), places.strip(), values)


def _values(text: str, word: str) -> Sequence[int]:
    if re.fullmatch(r"-?\d+", word):
        return (int(word),)
    match = _RANGE.match(word)
    if match is None:
        raise TargetError(f"{word!r} in {text!r} is neither a size nor a range: {_SYNTAX}")
    first, last, step = int(match["first"]), int(match["last"]), int(match["step"] or 1)
    if not step:
        raise TargetError(f"{word!r} in {text!r} has a step of 0: give a step of at least 1")
    steps = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if len(steps) > MAX_CALLS:
        raise TargetError(f"{word!r} in {text!r} has {len(steps)} values; give a larger step")
    return steps


def calls_from_ranges(target: Target, texts: Sequence[str]) -> tuple[Call, ...]:
    """The calls of a target for all combinations of these ranges, each labeled with its values."""
    ranges = [parse_range(text) for text in texts]
    names = [item.name for item in ranges]
    if len(set(names)) < len(names):
        raise TargetError(f"ranges are given for {', '.join(names)}: give every range a different name")
    task = Task.of(replace(target, gradients=False))
    settings = [_range_target(task, item) for item in ranges]
    combinations = list(product(*(item.values for item in ranges)))
    if len(combinations) > MAX_CALLS:
        raise TargetError(f"these ranges give {len(combinations)} calls: give larger steps")
    calls = []
    for values in combinations:
        changed = task
        for setting, value in zip(settings, values, strict=True):
            changed = _with_value(changed, setting, value)
        label = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        calls.append(_copy_marks(target, Call(changed.args, dict(changed.kwargs), label)))
    return tuple(calls)


def _range_target(task: Task, item: Range) -> Axis | str | int:
    """What a range changes: a size, or a number passed as a keyword or positional argument."""
    if not item.places:
        number = _number(task, item.name)
        if number is not None:
            return number
    if min(item.values) < 0:
        raise TargetError(f"sizes of {item.name!r} go down to {min(item.values)}: give integers from 0")
    places = item.places or ("" if item.name == "batch" else _second_dimension(task, item.name))
    axis = axes_of({f"{item.name}={places}" if places else item.name: [1]})[0]
    return replace(axis, sizes=item.values)


def _number(task: Task, name: str) -> str | int | None:
    """The keyword or position at which the inputs pass a number for a parameter of this name."""
    if name in task.kwargs:
        return name if _is_number(task.kwargs[name]) else None
    try:
        parameters = list(python_inspect.signature(getattr(task.function, "forward", task.function)).parameters)
    except (TypeError, ValueError):  # built in C
        return None
    place = parameters.index(name) if name in parameters else len(task.args)
    return place if place < len(task.args) and _is_number(task.args[place]) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _second_dimension(task: Task, name: str) -> str:
    """Every argument with a tensor whose dimension 1 has the same size as that of the first such tensor."""
    if name not in SEQUENCE_NAMES:
        raise TargetError(f"the position of {name!r} in the inputs is unknown: {_SYNTAX}")
    arguments: dict[str, Any] = {**{str(index): value for index, value in enumerate(task.args)}, **task.kwargs}
    sizes = {}
    for argument, value in arguments.items():
        leaves, _ = torch_private.flatten(value)
        tensor = next((leaf for leaf in leaves if torch_private.is_tensor(leaf) and leaf.dim() > 1), None)
        if tensor is not None:
            sizes[argument] = tensor.shape[1]
    if not sizes:
        raise TargetError(f"no input has a dimension 1 for {name!r}: {_SYNTAX}")
    first = next(iter(sizes.values()))
    return ",".join(f"{argument}:1" for argument, size in sizes.items() if size == first)


def _with_value(task: Task, setting: Axis | str | int, value: int) -> Task:
    if isinstance(setting, Axis):
        return resized(task, setting, value)
    if isinstance(setting, str):
        return replace(task, kwargs={**task.kwargs, setting: value}, further=())
    args = list(task.args)
    args[setting] = value
    return replace(task, args=tuple(args), further=())


def _copy_marks(target: Target, call: Call) -> Call:
    """Give resized tensors the same dynamic-dimension marks as the example."""
    for before, now in zip(Call(target.args, target.kwargs).leaves(), call.leaves(), strict=True):
        if torch_private.is_tensor(before) and now is not before:
            dynamo_state.copy_marks(before, now)
    return call
