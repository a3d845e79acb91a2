"""What a function reaches without being given it: modules, tensors and Python values of its closure and globals.

This is a search by name, for comparing a function with its variants: what it finds is put back between two runs, and
disturbed or widened to float64 for a reference. What a variant depends on is not guessed here; Dynamo's capture says it
(see `program`).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MOST_FUNCTIONS = 200
"""So many functions are looked into for what they hold."""
MOST_WRAPPERS = 20
SCALARS = (bool, int, float, complex, str, type(None))
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
LIBRARIES = ("torch", "numpy", "builtins", "math", "functools", "typing", "collections")


@dataclass(frozen=True)
class Holding:
    """A tensor that a function reaches without being given it, and how to get at it now.

    `owner[key]` is the tensor: the dictionary of parameters or buffers of a module, the globals of a function, or a
    one-entry view of a closure cell.
    """

    name: str
    owner: Any
    key: Any
    differentiable: bool

    def now(self) -> Any:
        """The tensor as it is now."""
        return self.owner[self.key]


class Cell:
    """A closure cell, seen as a dictionary with one entry."""

    __slots__ = ("_cell",)

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell

    def __getitem__(self, key: Any) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: Any, value: Any) -> None:
        self._cell.cell_contents = value


@dataclass(frozen=True)
class Constant:
    """A Python value that a function reaches without being given it."""

    name: str
    owner: Any
    key: Any
    value: Any


def _plain(function: Any) -> Any:
    """The Python function behind a method or a partial, None where there is none."""
    try:
        for _ in range(MOST_WRAPPERS):
            if hasattr(function, "__func__"):
                function = function.__func__
            elif hasattr(function, "func"):
                function = function.func
            elif hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            else:
                return function if isinstance(function, types.FunctionType) else None
    except Exception:  # an object of the user's that does not like to be asked
        return None
    return None


def _reached(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """(name, owner, key) of everything a Python function finds in its closure and globals, and so do those it finds."""
    pending = [("", function)]
    seen: set[int] = set()  # functions, not their code: two closures of one factory read different things
    own = function.__self__ if isinstance(function, types.MethodType) else function
    attributes = _attributes(own)
    if attributes is not None:  # a method, or an object that can be called: what it is about
        yield from [(f"self.{key}", attributes, key) for key in attributes]
        pending += [("self.", method) for method in _methods(type(own))] if own is function else []
    while pending:
        prefix, current = pending.pop(0)
        plain = _plain(current)
        if plain is None or id(plain) in seen or len(seen) > MOST_FUNCTIONS:
            continue
        seen.add(id(plain))
        for name, owner, key in _found(plain):
            yield prefix + name, owner, key
            value = owner[key]
            if isinstance(value, FUNCTIONS) and not _of_a_library(value):
                pending.append((f"{prefix}{name}.", value))


def _methods(kind: type) -> list[types.FunctionType]:
    """The methods of a class of the user's, and of those it comes from."""
    classes = [each for each in kind.__mro__ if each.__module__.partition(".")[0] not in LIBRARIES]
    return [value for each in classes for value in vars(each).values() if isinstance(value, types.FunctionType)]


def _attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a class of the user's; None where it is something else."""
    import torch

    kind = type(value)
    if issubclass(kind, (type, types.ModuleType, torch.Tensor, torch.nn.Module, *FUNCTIONS)):
        return None
    home = str(getattr(kind, "__module__", "")).partition(".")[0]
    if home in LIBRARIES or home in sys.stdlib_module_names:
        return None
    try:
        found = vars(value)
    except Exception:  # it has none, or does not like to be asked
        return None
    return found if type(found) is dict else None


def _of_a_library(function: Any) -> bool:
    """Whether a function belongs to torch or Python itself, which read nothing of the user's."""
    top = str(getattr(_plain(function), "__module__", "") or "").partition(".")[0]
    return top in LIBRARIES


def _found(plain: types.FunctionType) -> Iterator[tuple[str, Any, Any]]:
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        try:
            cell.cell_contents  # noqa: B018 (an empty cell raises)
        except ValueError:
            continue
        yield name, Cell(cell), 0
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
    seen: set[int] = set()
    for candidate in (function, owner, *(place[key] for _, place, key in _reached(function))):
        if isinstance(candidate, torch.nn.Module) and id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate


def tensors_of(function: Any, modules: tuple[Any, ...]) -> Iterator[Holding]:
    """Tensors a function reaches by itself: parameters, buffers, tensors of its closure and globals."""
    import torch

    seen: set[int] = set()
    for module in modules:
        for prefix, part in module.named_modules():
            dot = f"{prefix}." if prefix else ""
            for store, differentiable in ((part._parameters, True), (part._buffers, False)):
                for key, tensor in store.items():
                    if tensor is not None and id(tensor) not in seen:
                        seen.add(id(tensor))
                        yield Holding(dot + key, store, key, differentiable)
            for key, value in vars(part).items():
                if isinstance(value, torch.Tensor) and id(value) not in seen:
                    seen.add(id(value))
                    yield Holding(dot + key, vars(part), key, value.requires_grad)
    for name, owner, key in _reached(function):
        value = owner[key]
        if not isinstance(value, torch.Tensor) or (value.requires_grad and id(value) in seen):
            continue
        # A tensor without gradient may be found in several places: whoever replaces it must replace it in all of them.
        seen.add(id(value))
        yield Holding(name, owner, key, value.requires_grad)


def constants_of(function: Any, modules: tuple[Any, ...]) -> Iterator[Constant]:
    """Python values a function reaches by itself, and that may change between calls."""
    for name, owner, key in _reached(function):
        if isinstance(owner[key], SCALARS):
            yield Constant(name, owner, key, owner[key])
    for module in modules:
        for prefix, part in module.named_modules():
            dot = f"{prefix}." if prefix else ""
            if "training" in vars(part):  # a scripted module keeps it elsewhere
                yield Constant(dot + "training", vars(part), "training", part.training)
            if type(part).__module__.startswith("torch.nn"):
                continue  # sizes and the like, which nobody changes
            for key, value in vars(part).items():
                if not key.startswith("_") and key not in ("training", "call_super_init") and isinstance(value, SCALARS):
                    yield Constant(dot + key, vars(part), key, value)


@contextmanager
def replaced(held: tuple[Holding, ...], tensors: list[Any]) -> Iterator[None]:
    """For a while, let a function find other tensors where it finds those it holds."""
    before = [item.now() for item in held]
    try:
        for item, tensor in zip(held, tensors, strict=True):
            item.owner[item.key] = tensor
        yield
    finally:
        for item, tensor in zip(held, before, strict=True):
            item.owner[item.key] = tensor
