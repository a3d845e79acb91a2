"""What every variant runs: a function, its inputs, the tensors it holds, and whether gradients matter."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compile_inspect.capture import torch_private
from compile_inspect.errors import TargetError
from compile_inspect.target import Inputs, Target
from compile_inspect.variants.base import Step

if TYPE_CHECKING:
    from compile_inspect.variants.program import Program

MOST_FUNCTIONS = 200
"""So many functions are looked into for what they hold."""
MOST_ENTRIES, DEEPEST = 100, 4
"""Lists, dictionaries and objects with more entries, or within so many others, are not looked into."""
MOST_OBJECTS = 50
"""Where there are more, none of them is: a check of all of them would take longer than what it is for."""
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
    """A Python value that a function reaches without being given it; a traced graph freezes it."""

    name: str
    owner: Any
    key: Any
    value: Any

    def unchanged(self) -> bool:
        """Whether it still is what it was, where it was."""
        try:
            now = self.owner[self.key]
        except (KeyError, IndexError, ValueError):
            return False
        return now is self.value or (type(now) is type(self.value) and bool(now == self.value))


@dataclass(frozen=True)
class Task:
    """A function at example inputs, with or without gradients.

    With gradients a run is one forward and one backward of the sum of its floating-point results, with respect to
    every parameter and every input that requires a gradient.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    gradients: bool = False
    further: tuple[Inputs, ...] = ()
    label: str = ""
    """What is made of the function, where several things are; kept packages are told apart by it."""
    within: bool = False
    """Also look for what the function reaches within objects, lists and dictionaries of its closure and globals."""

    @classmethod
    def of(cls, target: Target) -> Task:
        """The task that a target describes; where it leaves gradients open, they matter if an input wants them."""
        wanted = target.gradients
        if wanted is None:
            leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
            wanted = any(torch_private.is_tensor(leaf) and leaf.requires_grad for leaf in leaves)
        return cls(target.function, target.args, target.kwargs, wanted, target.further)

    @property
    def name(self) -> str:
        """How the function is called."""
        function = self.function
        return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")

    @cached_property
    def modules(self) -> tuple[Any, ...]:
        """The modules that the function is, is a method of, or finds in its closure and globals."""
        return tuple(_modules(self.function, self.within))

    @cached_property
    def held(self) -> tuple[Holding, ...]:
        """Tensors the function reaches by itself: parameters, buffers, tensors of its closure and globals."""
        return tuple(_held(self.function, self.modules, self.within))

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Python values the function reaches by itself, and that may change between calls."""
        return tuple(_constants(self.function, self.modules, self.within))

    @cached_property
    def program(self) -> Program:
        """What Dynamo captures of the function at the example; raises `Refused` where that is not the whole of it."""
        from compile_inspect.variants.program import Program

        return Program(self)

    @cached_property
    def device(self) -> str:
        """The type of device of the first tensor, `cpu` where there is none."""
        leaves, _ = torch_private.flatten((self.args, dict(self.kwargs)))
        found = [leaf for leaf in leaves if torch_private.is_tensor(leaf)] or [item.now() for item in self.held]
        return str(found[0].device.type) if found else "cpu"

    def wanted(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors whose gradients a run gives: held ones first, then inputs."""
        if not self.gradients:
            return []
        leaves, _ = torch_private.flatten((args, dict(kwargs)))
        held = [item.now() for item in self.held if item.differentiable]
        inputs = [leaf for leaf in leaves if torch_private.is_tensor(leaf) and leaf.requires_grad]
        return [tensor for tensor in held if tensor.requires_grad] + inputs

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Step:
        """Run a function with the signature of the task's own, forward and, if wanted, backward."""
        import torch

        if not self.gradients:
            with torch.no_grad():
                return Step(function(*args, **kwargs))
        result = function(*args, **kwargs)
        return Step(result, gradients(result, self.wanted(args, kwargs)))

    def inputs(self) -> tuple[Inputs, ...]:
        """The example inputs, then the further ones."""
        return ((self.args, self.kwargs), *self.further)


def gradients(result: Any, wanted: list[Any]) -> tuple[Any, ...]:
    """Gradients of the sum of all floating-point tensors in a result; zeros where there is no dependence."""
    import torch

    leaves, _ = torch_private.flatten(result)
    outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not outputs:
        raise TargetError("gradients were asked for, but no result depends on a tensor that requires one")
    found = torch.autograd.grad(outputs, wanted, [torch.ones_like(output) for output in outputs], allow_unused=True)
    return tuple(torch.zeros_like(of) if item is None else item for item, of in zip(found, wanted, strict=True))


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


class _TooMuch(Exception):  # noqa: N818 (it reads as a statement of fact)
    """There is more within objects than can be checked at every call."""


def _reached(function: Any, within: bool) -> list[tuple[str, Any, Any]]:
    """(name, owner, key) of everything a Python function finds in its closure and globals, and so do those it finds.

    With `within`, also of what objects, lists and dictionaries found there hold, unless that is too much.
    """
    try:
        return list(_walk(function, within))
    except _TooMuch:
        return list(_walk(function, within=False))


def _walk(function: Any, within: bool) -> Iterator[tuple[str, Any, Any]]:
    pending = [("", function)]
    seen: set[int] = set()  # functions, not their code: two closures of one factory read different things
    objects: set[int] = set()
    own = function.__self__ if isinstance(function, types.MethodType) else function
    if _attributes(own) is not None:  # a method, or an object that can be called: what it is about
        with suppress(_TooMuch):
            yield from list(_within("self", own, objects, 1))
        pending += [("self.", method) for method in _methods(type(own))] if own is function else []
    while pending:
        prefix, current = pending.pop(0)
        plain = _plain(current)
        if plain is None or id(plain) in seen or len(seen) > MOST_FUNCTIONS:
            continue
        seen.add(id(plain))
        for name, owner, key in _found(plain):
            inside = _within(prefix + name, owner[key], objects, DEEPEST) if within else ()
            for place in ((prefix + name, owner, key), *inside):
                yield place
                value = place[1][place[2]]
                if isinstance(value, FUNCTIONS) and not _of_a_library(value):
                    pending.append((f"{place[0]}.", value))
                elif within and _attributes(value) is not None:
                    pending += [(f"{place[0]}.", method) for method in _methods(type(value))]


def _within(name: str, value: Any, seen: set[int], depth: int) -> Iterator[tuple[str, Any, Any]]:
    """(name, owner, key) of what a list, a dictionary or an object of the user's holds, and so do those it holds.

    Tuples are left out: what they hold cannot be replaced by something else to be traced with.
    """
    value = value.__self__ if type(value) is types.MethodType else value
    kind = type(value)
    owner = value if kind in (list, dict) else _attributes(value)
    if owner is None or not depth or id(value) in seen or len(owner) > MOST_ENTRIES:
        return
    seen.add(id(value))
    if len(seen) > MOST_OBJECTS:
        raise _TooMuch
    for key in list(range(len(owner)) if kind is list else owner):
        label = f"{name}.{key}" if kind not in (list, dict) else f"{name}[{_label(key)}]"
        yield label, owner, key
        yield from _within(label, owner[key], seen, depth - 1)


def _methods(kind: type) -> list[types.FunctionType]:
    """The methods of a class of the user's, and of those it comes from."""
    classes = [each for each in kind.__mro__ if each.__module__.partition(".")[0] not in LIBRARIES]
    return [value for each in classes for value in vars(each).values() if isinstance(value, types.FunctionType)]


def _label(key: Any) -> str:
    try:
        return repr(key)
    except Exception:
        return f"<{type(key).__name__}>"


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


def _modules(function: Any, within: bool) -> Iterator[Any]:
    import torch

    owner = getattr(function, "__self__", None)
    seen: set[int] = set()
    for candidate in (function, owner, *(place[key] for _, place, key in _reached(function, within))):
        if isinstance(candidate, torch.nn.Module) and id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate


def _held(function: Any, modules: tuple[Any, ...], within: bool) -> Iterator[Holding]:
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
    for name, owner, key in _reached(function, within):
        value = owner[key]
        if not isinstance(value, torch.Tensor) or (value.requires_grad and id(value) in seen):
            continue
        # A tensor without gradient may be found in several places: whoever replaces it must replace it in all of them.
        seen.add(id(value))
        yield Holding(name, owner, key, value.requires_grad)


def _constants(function: Any, modules: tuple[Any, ...], within: bool) -> Iterator[Constant]:
    for name, owner, key in _reached(function, within):
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
