"""State that a function reaches without arguments: modules, tensors and Python values of its closure and globals.

This is a search by name, for comparing a function with its variants: what it finds is restored between two runs, and
perturbed or widened to float64 for a reference. It does not decide what a variant depends on; Dynamo's capture does
(see `captured_program`).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MAX_FUNCTIONS = 200
"""Maximum number of functions to search."""
MAX_WRAPPERS = 20
SCALARS = (bool, int, float, complex, str, type(None))
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
LIBRARIES = ("torch", "numpy", "builtins", "math", "functools", "typing", "collections")


@dataclass(frozen=True)
class ReachableTensor:
    """A tensor that a function reaches without arguments, and how to look it up.

    `owner[key]` is the tensor: `owner` is the dictionary of parameters or buffers of a module, the globals of a function,
    or a one-entry view of a closure cell.
    """

    name: str
    owner: Any
    key: Any
    differentiable: bool

    def now(self) -> Any:
        """The current tensor."""
        return self.owner[self.key]


class CellView:
    """A closure cell as a dictionary with one entry."""

    __slots__ = ("_cell",)

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: Any, value: Any) -> None:
        self._cell.cell_contents = value


@dataclass(frozen=True)
class Constant:
    """A Python value that a function reaches without arguments."""

    name: str
    owner: Any
    key: Any
    value: Any


def _unwrapped_function(function: Any) -> Any:
    """The Python function behind a method or a partial; None if there is none."""
    try:
        for _ in range(MAX_WRAPPERS):
            if hasattr(function, "__func__"):
                function = function.__func__
            elif hasattr(function, "func"):
                function = function.func
            elif hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            else:
                return function if isinstance(function, types.FunctionType) else None
    except Exception:  # a user's object may not support attribute access
        return None
    return None


def _reachable(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """(name, owner, key) of everything in a Python function's closure and globals, and in those of functions found there."""
    pending = [("", function)]
    visited: set[int] = set()  # functions rather than code: two closures of one factory read different things
    own = function.__self__ if isinstance(function, types.MethodType) else function
    attributes = _attributes(own)
    if attributes is not None:  # a method, or a callable object: its attributes
        yield from [(f"self.{key}", attributes, key) for key in attributes]
        pending += [("self.", method) for method in _methods(type(own))] if own is function else []
    while pending:
        prefix, current = pending.pop(0)
        plain = _unwrapped_function(current)
        if plain is None or id(plain) in visited or len(visited) > MAX_FUNCTIONS:
            continue
        visited.add(id(plain))
        for name, owner, key in _names_of(plain):
            yield prefix + name, owner, key
            value = owner[key]
            if isinstance(value, FUNCTIONS) and not _of_a_library(value):
                pending.append((f"{prefix}{name}.", value))


def _methods(kind: type) -> list[types.FunctionType]:
    """The methods of a user's class and of its bases."""
    classes = [each for each in kind.__mro__ if each.__module__.partition(".")[0] not in LIBRARIES]
    return [value for each in classes for value in vars(each).values() if isinstance(value, types.FunctionType)]


def _attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an instance of a user's class; None for anything else."""
    import torch

    kind = type(value)
    if issubclass(kind, (type, types.ModuleType, torch.Tensor, torch.nn.Module, *FUNCTIONS)):
        return None
    home = str(getattr(kind, "__module__", "")).partition(".")[0]
    if home in LIBRARIES or home in sys.stdlib_module_names:
        return None
    try:
        attributes = vars(value)
    except Exception:  # it has none, or does not support attribute access
        return None
    return attributes if type(attributes) is dict else None


def _of_a_library(function: Any) -> bool:
    """Whether a function belongs to torch or Python itself, which read none of the user's state."""
    top = str(getattr(_unwrapped_function(function), "__module__", "") or "").partition(".")[0]
    return top in LIBRARIES


def _names_of(plain: types.FunctionType) -> Iterator[tuple[str, Any, Any]]:
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        try:
            cell.cell_contents  # noqa: B018 (an empty cell raises)
        except ValueError:
            continue
        yield name, CellView(cell), 0
    for name in _global_names(plain.__code__):
        if name in plain.__globals__:
            yield name, plain.__globals__, name


def _global_names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return list(dict.fromkeys(names))


def modules_of(function: Any) -> Iterator[Any]:
    """The modules that a function is, is a method of, or finds in its closure and globals."""
    import torch

    owner = function.__self__ if isinstance(function, types.MethodType) else None
    visited: set[int] = set()
    for candidate in (function, owner, *(place[key] for _, place, key in _reachable(function))):
        if isinstance(candidate, torch.nn.Module) and id(candidate) not in visited:
            visited.add(id(candidate))
            yield candidate


def tensors_of(function: Any, modules: tuple[Any, ...]) -> Iterator[ReachableTensor]:
    """Tensors that a function reaches by itself: parameters, buffers, tensors of its closure and globals."""
    import torch

    visited: set[int] = set()
    for module in modules:
        for prefix, part in module.named_modules():
            dot = f"{prefix}." if prefix else ""
            for store, differentiable in ((part._parameters, True), (part._buffers, False)):
                for key, tensor in store.items():
                    if tensor is not None and id(tensor) not in visited:
                        visited.add(id(tensor))
                        yield ReachableTensor(dot + key, store, key, differentiable)
            for key, value in vars(part).items():
                if isinstance(value, torch.Tensor) and id(value) not in visited:
                    visited.add(id(value))
                    yield ReachableTensor(dot + key, vars(part), key, value.requires_grad)
    for name, owner, key in _reachable(function):
        value = owner[key]
        if not isinstance(value, torch.Tensor) or (value.requires_grad and id(value) in visited):
            continue
        # A tensor without gradient may be in several places: all of them must be replaced together.
        visited.add(id(value))
        yield ReachableTensor(name, owner, key, value.requires_grad)


def constants_of(function: Any, modules: tuple[Any, ...]) -> Iterator[Constant]:
    """Python values that a function reaches by itself, and that may change between calls."""
    for name, owner, key in _reachable(function):
        if isinstance(owner[key], SCALARS):
            yield Constant(name, owner, key, owner[key])
    for module in modules:
        for prefix, part in module.named_modules():
            dot = f"{prefix}." if prefix else ""
            if "training" in vars(part):  # a scripted module stores it elsewhere
                yield Constant(dot + "training", vars(part), "training", part.training)
            if type(part).__module__.startswith("torch.nn"):
                continue  # sizes and the like, which do not change
            for key, value in vars(part).items():
                if not key.startswith("_") and key not in ("training", "call_super_init") and isinstance(value, SCALARS):
                    yield Constant(dot + key, vars(part), key, value)


@contextmanager
def replace_tensors(held: tuple[ReachableTensor, ...], tensors: list[Any]) -> Iterator[None]:
    """Replace the tensors that a function holds by others for a while."""
    before = [item.now() for item in held]
    try:
        for item, tensor in zip(held, tensors, strict=True):
            item.owner[item.key] = tensor
        yield
    finally:
        for item, tensor in zip(held, before, strict=True):
            item.owner[item.key] = tensor
