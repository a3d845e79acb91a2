"""Run a function and record what it returned, its gradients, and what it changed; then restore everything."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect as python_inspect
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_inputs, clone_tensor
from compile_inspect.agreement.tensor_metadata import TensorMetadata, kind_of, metadata_of, parts_of
from compile_inspect.target import Inputs
from compile_inspect.variants import Step, Task
from compile_inspect.variants.base import one_line


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run, by name: `result[0]`, `gradient of weight`; `changes` has the name of what was changed."""

    values: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    """The exception in one line, if there was one."""
    incomparable_reason: str | None = None
    """Why the results cannot be compared, if they cannot."""
    metadata: dict[str, TensorMetadata] = field(default_factory=dict)
    """Metadata of the tensors in the result."""

    @property
    def all_values(self) -> dict[str, Any]:
        """Values and changes together."""
        return {**self.values, **{f"{name} after the call": value for name, value in self.changes.items()}}


def observe(task: Task, run: Callable[..., Step], inputs: Inputs, seed: int) -> RunOutcome:
    """Run on copies of the inputs from a given seed; then restore buffers, parameters, Python state and generators."""
    args, kwargs = clone_inputs(inputs)
    before = copy_leaves(inputs)
    # What a compiler reports about inputs that we made up does not concern the user.
    with preserve_state(task) as changes, torch_private.suppressed_compiler_output():
        with seed_generators(seed):
            try:
                step = run(*args, **kwargs)
            except Exception as error:
                return RunOutcome(error=one_line(error))
        try:
            values = named_values(task, step, args, kwargs)
            metadata = _result_metadata(task, step, args, kwargs)
            changed_state = changes()
        except Exception as error:  # some kinds of tensors do not support these queries
            return RunOutcome(incomparable_reason=one_line(error))
    changed_inputs = _changed_inputs(dict(zip(input_names(task, inputs), before, strict=True)), task, (args, kwargs))
    return RunOutcome(values, _split({**changed_inputs, **changed_state}), metadata=metadata)


def _changed_inputs(before: dict[str, Any], task: Task, inputs: Inputs) -> dict[str, Any]:
    """The inputs that changed; containers may have grown or lost entries."""
    after = dict(zip(input_names(task, inputs), copy_leaves(inputs), strict=True))
    changed_inputs = {name: value for name, value in after.items() if name not in before or not same_value(before[name], value)}
    return changed_inputs | {name: "removed" for name in before if name not in after}


def _result_metadata(task: Task, step: Step, args: Any, kwargs: Any) -> dict[str, TensorMetadata]:
    leaves, _ = torch_private.flatten((args, dict(kwargs)))
    other_tensors = [
        *zip(input_names(task, (args, kwargs)), leaves, strict=True),
        *((item.name, item.now()) for item in task.held_tensors),
    ]
    return metadata_of([(f"result{path}", leaf) for path, leaf in named_leaves(step.result)], other_tensors)


def _split(values: dict[str, Any]) -> dict[str, Any]:
    """Split tensors that are not plain into their parts."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if torch_private.is_tensor(value):
            result |= {f"{name}{rest}": clone_tensor(part).detach() for rest, part in parts_of(value)}
        else:
            result[name] = value
    return result


def copy_leaves(inputs: Inputs) -> list[Any]:
    """Copies of the tensors among inputs; other leaves as they are."""
    leaves, _ = torch_private.flatten((inputs[0], dict(inputs[1])))
    return [clone_tensor(leaf).detach() if torch_private.is_tensor(leaf) else leaf for leaf in leaves]


@contextlib.contextmanager
def seed_generators(seed: int) -> Iterator[None]:
    """Start the generators of torch, Python and NumPy from a seed; restore them and the grad mode afterward."""
    import torch

    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    python, numpy = random.getstate(), sys.modules.get("numpy.random")
    numbers = numpy.get_state() if numpy is not None else None
    with torch.random.fork_rng(devices), torch.set_grad_enabled(torch.is_grad_enabled()):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed devices that are not in use
        if devices:
            torch.cuda.manual_seed_all(seed)
        random.seed(seed)
        if numpy is not None:
            numpy.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            if numpy is not None:
                numpy.set_state(numbers)


@contextlib.contextmanager
def preserve_state(task: Task) -> Iterator[Callable[[], dict[str, Any]]]:
    """Restore what the function holds afterward.

    Yields a function that returns what has changed since: tensors, their accumulated gradients, and Python values.
    """
    import torch

    tensors = [item.now() for item in task.held_tensors]
    saved = [clone_tensor(tensor).detach() for tensor in tensors]
    gradients = [tensor.grad if tensor.is_leaf else None for tensor in tensors]
    saved_gradients = [None if item is None else item.detach().clone() for item in gradients]
    constants = [item.owner[item.key] for item in task.constants]

    def changes() -> dict[str, Any]:
        result: dict[str, Any] = {}
        for item, value, gradient in zip(task.held_tensors, saved, saved_gradients, strict=True):
            now = item.now()
            if not same_value(now, value):
                result[item.name] = clone_tensor(now).detach() if torch_private.is_tensor(now) else now
            current = now.grad if torch_private.is_tensor(now) and now.is_leaf else None
            if current is not None and not same_value(current, gradient):
                result[f"{item.name}.grad"] = current.detach().clone()
        for constant, value in zip(task.constants, constants, strict=True):
            if not same_value(constant.owner[constant.key], value):
                result[constant.name] = constant.owner[constant.key]
        return result

    try:
        yield changes
    finally:
        with torch.no_grad():
            for index, item in enumerate(task.held_tensors):
                if item.now() is not tensors[index]:
                    item.owner[item.key] = tensors[index]
                if not same_value(tensors[index], saved[index]):
                    tensors[index].copy_(saved[index])
                if tensors[index].is_leaf:
                    gradient = gradients[index]
                    if gradient is not None and not same_value(gradient, saved_gradients[index]):
                        gradient.copy_(saved_gradients[index])
                    tensors[index].grad = gradient
        for constant, value in zip(task.constants, constants, strict=True):
            if constant.owner[constant.key] is not value:
                constant.owner[constant.key] = value


@dataclass(frozen=True)
class HeldState:
    """What a function held at one moment: copies of its tensors, and its Python values."""

    tensors: list[Any]
    constants: list[Any]

    @classmethod
    def now(cls, task: Task) -> HeldState:
        """The present state."""
        tensors = [clone_tensor(item.now()).detach() for item in task.held_tensors]
        return cls(tensors, [item.owner[item.key] for item in task.constants])


@contextlib.contextmanager
def with_state(task: Task, state: HeldState) -> Iterator[None]:
    """Set what the function holds to an earlier state for a while: building a variant may have moved a running mean."""
    import torch

    with preserve_state(task):
        with torch.no_grad():
            for item, tensor in zip(task.held_tensors, state.tensors, strict=True):
                if not same_value(item.now(), tensor):
                    item.now().copy_(tensor)
        for constant, value in zip(task.constants, state.constants, strict=True):
            if not same_value(constant.owner[constant.key], value):
                constant.owner[constant.key] = value
        yield


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are equal, with NaN equal to NaN."""
    if torch_private.is_tensor(one) and torch_private.is_tensor(other):
        if one.dtype != other.dtype or one.device != other.device or kind_of(one) != kind_of(other):
            return False
        parts, others = parts_of(one), parts_of(other)
        return len(parts) == len(others) and all(
            _same_numbers(part, another) for (_, part), (_, another) in zip(parts, others, strict=True)
        )
    if torch_private.is_tensor(one) or torch_private.is_tensor(other):
        return False
    try:
        return one is other or (type(one) is type(other) and bool(one == other)) or bool(one != one and other != other)
    except Exception:  # a user's object may not support comparison
        return False


def _same_numbers(one: Any, other: Any) -> bool:
    import torch

    try:
        if torch.equal(one, other):
            return True
        floating = one.is_floating_point() or one.is_complex()
        return bool(floating and one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True))
    except (RuntimeError, NotImplementedError):  # dtypes that cannot be compared
        return False


def named_values(task: Task, step: Step, args: Any, kwargs: Any) -> dict[str, Any]:
    """Copies of the result and the gradients under the names that reports use."""
    values = {f"result{path}": leaf for path, leaf in named_leaves(step.result)}
    return _split(values | dict(zip(gradient_names(task, (args, kwargs)), step.gradients, strict=False)))


def named_leaves(value: Any, depth: int = 4) -> list[tuple[str, Any]]:
    """The leaves of a nested structure with their paths.

    Classes that pytree does not know are opened too: all fields of dataclasses, and the tensors of other objects.
    """
    from torch.utils._pytree import keystr, tree_flatten_with_path

    result: list[tuple[str, Any]] = []
    for path, leaf in tree_flatten_with_path(value)[0]:
        inside = _attributes_of(leaf) if depth else None
        if inside is None:
            result.append((keystr(path), leaf))
            continue
        opened = [
            (f"{keystr(path)}.{name}{rest}", inner)
            for name, item in inside.items()
            for rest, inner in named_leaves(item, depth - 1)
        ]
        result += [item for item in opened if dataclasses.is_dataclass(leaf) or torch_private.is_tensor(item[1])]
    return result


def _attributes_of(leaf: Any) -> dict[str, Any] | None:
    """The attributes of an object that holds results; None for a value."""
    import torch

    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return {item.name: getattr(leaf, item.name) for item in dataclasses.fields(leaf)}
    plain = torch_private.is_tensor(leaf) or isinstance(leaf, (type, torch.nn.Module)) or callable(leaf)
    return None if plain or not compares_by_identity(leaf) else dict(getattr(leaf, "__dict__", {}))


def compares_by_identity(value: Any) -> bool:
    """Whether an object compares by identity, so that two calls never give equal ones."""
    equality: Any = type(value).__eq__
    return equality is object.__eq__


def input_names(task: Task, inputs: Inputs) -> list[str]:
    """A name for every leaf of the inputs, as the function would write it: `x`, `rest[0]`, `kwargs['ids'].size`."""
    from torch.utils._pytree import keystr, tree_flatten_with_path

    parameters = _parameters(task.function)
    positional = [item.name for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    rest = next((item.name for item in parameters if item.kind is item.VAR_POSITIONAL), None)
    others = next((item.name for item in parameters if item.kind is item.VAR_KEYWORD), None)
    keyword_names = {item.name for item in parameters if item.kind is not item.POSITIONAL_ONLY}
    names = []
    paths: list[Any] = [path for path, _ in tree_flatten_with_path((inputs[0], dict(inputs[1])))[0]]
    for path in paths:
        if path[0].idx == 0:
            position = path[1].idx
            extra = f"input {position}" if rest is None else f"{rest}[{position - len(positional)}]"
            base = positional[position] if position < len(positional) else extra
        else:
            key = str(path[1].key)
            base = key if key in keyword_names or others is None else f"{others}[{key!r}]"
        names.append(base + keystr(path[2:]))
    return names


def gradient_names(task: Task, inputs: Inputs) -> list[str]:
    """Names for the gradients of a run, in the order of `Task.differentiated_names`, then for the second derivatives."""
    leaves, _ = torch_private.flatten((inputs[0], dict(inputs[1])))
    held_names = [item.name for item in task.held_tensors if item.differentiable and item.now().requires_grad]
    names = input_names(task, inputs)
    differentiated_names = held_names + [
        name for name, leaf in zip(names, leaves, strict=True) if torch_private.is_tensor(leaf) and leaf.requires_grad
    ]
    return [f"gradient of {name}" for name in differentiated_names] + [
        f"second derivative by {name}" for name in differentiated_names
    ]


def _parameters(function: Any) -> list[python_inspect.Parameter]:
    try:
        return list(python_inspect.signature(getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):  # built in C
        return []
