"""Changes of state, generated: for every Python value and tensor that a program can reach, another one."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

LIBRARIES = {"torch", "numpy", "builtins", "typing", "functools", "transformers", "dataclasses", "enum", "abc"}


@dataclass(frozen=True)
class Mutation:
    """One change: `apply` makes it, `undo` takes it back."""

    name: str
    apply: Callable[[], Any]
    undo: Callable[[], Any]


@dataclass(frozen=True)
class Place:
    """A value, and how to put another in its place."""

    name: str
    value: Any
    put: Callable[[Any], Any]
    restore: Callable[[], Any] | None = None
    """Puts back what was there, where that is more than the value."""


def mutations(function: Any, *, most: int = 400) -> list[Mutation]:
    """Every change that can be made to what a function reaches."""
    found: dict[str, Mutation] = {}
    for place in places(function):
        for word, value in _others(place.value):
            name = f"{place.name} → {word}"
            undo = place.restore or functools.partial(place.put, place.value)
            found.setdefault(name, Mutation(name, functools.partial(place.put, value), undo))
        for mutation in _in_place(place):
            found.setdefault(mutation.name, mutation)
    return list(found.values())[:most]


def places(function: Any) -> Iterator[Place]:
    """Everything a function can reach, to a depth, each with the way to replace it."""
    seen: set[int] = set()
    pending: list[tuple[Place, int]] = [(Place("f", function, lambda value: None), 0)]
    while pending:
        place, depth = pending.pop(0)
        for child in _children(place.name, place.value):
            yield child
            value = child.value
            if depth < 7 and id(value) not in seen and not isinstance(value, (int, float, str, bytes, type(None))):
                seen.add(id(value))
                pending.append((child, depth + 1))


def _children(name: str, value: Any) -> Iterator[Place]:
    if isinstance(value, functools.partial):
        yield from _children(name, value.func)
        yield from _items(f"{name}.keywords", value.keywords)
    elif isinstance(value, types.MethodType):
        yield Place(f"{name}.__self__", value.__self__, lambda new: None)
        yield from _children(name, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(name, value)
    elif isinstance(value, nn.Module):
        yield from _items(f"{name}", vars(value), skip=("_parameters", "_buffers", "_modules"))
        for part in (value._parameters, value._buffers, value._modules):
            yield from _items(name, part)
        yield from _of_class(name, type(value))
    elif isinstance(value, types.ModuleType):
        if (
            value.__name__.partition(".")[0] not in LIBRARIES
            and value.__name__.partition(".")[0] not in sys.stdlib_module_names
        ):
            yield from _attributes(name, value, [key for key in vars(value) if not key.startswith("__")])
    elif isinstance(value, dict):
        yield from _items(name, value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield Place(f"{name}[{index}]", item, functools.partial(value.__setitem__, index))
    elif isinstance(value, (tuple, set, frozenset)):
        for index, item in enumerate(value):
            if not isinstance(item, (int, float, str)):
                yield Place(f"{name}[{index}]", item, lambda new: None)
    elif isinstance(value, type):
        yield from _of_class(name, value)
    elif not isinstance(value, (Tensor, int, float, complex, str, bytes, type(None), enum.Enum, torch.dtype, torch.device)):
        keys = [*getattr(value, "__dict__", {}), *_slots(type(value))]
        yield from _attributes(name, value, keys)
        yield from _of_class(name, type(value))


def _of_function(name: str, function: types.FunctionType) -> Iterator[Place]:
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield Place(f"{name}.__wrapped__", wrapped, lambda new: None)
    for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Place(f"{name}:{key}", cell.cell_contents, functools.partial(_set_cell, cell))
        except ValueError:
            continue
    for key in _names(function.__code__):
        if key in function.__globals__:
            yield Place(f"global {key}", function.__globals__[key], functools.partial(function.__globals__.__setitem__, key))
    if function.__defaults__:
        yield Place(f"{name}.__defaults__", function.__defaults__, functools.partial(setattr, function, "__defaults__"))
    yield from _items(f"{name}.__kwdefaults__", function.__kwdefaults__ or {})


def _of_class(name: str, kind: type) -> Iterator[Place]:
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in LIBRARIES or base.__module__ in sys.stdlib_module_names:
            continue
        for key, value in list(vars(base).items()):
            if key.startswith("__") and key != "__call__":
                continue
            put = functools.partial(setattr, base, key)
            if isinstance(value, (staticmethod, classmethod)):
                yield Place(
                    f"{base.__name__}.{key}",
                    value.__func__,
                    lambda new, put=put, kind=value.__class__: put(kind(new)),
                    functools.partial(put, value),
                )
            elif isinstance(value, property):
                yield Place(
                    f"{base.__name__}.{key}", value.fget, lambda new, put=put: put(property(new)), functools.partial(put, value)
                )
            else:
                yield Place(f"{base.__name__}.{key}", value, put)


def _items(name: str, owner: dict[Any, Any], skip: tuple[str, ...] = ()) -> Iterator[Place]:
    for key, value in list(owner.items()):
        if key not in skip:
            yield Place(f"{name}.{key}", value, functools.partial(owner.__setitem__, key))


def _attributes(name: str, owner: Any, keys: list[str]) -> Iterator[Place]:
    for key in keys:
        if hasattr(owner, key):
            yield Place(
                f"{name}.{key}",
                getattr(owner, key),
                functools.partial(object.__setattr__, owner, key)
                if not isinstance(owner, types.ModuleType)
                else functools.partial(setattr, owner, key),
            )


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return found


def _names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return list(dict.fromkeys(names))


def _set_cell(cell: types.CellType, value: Any) -> None:
    cell.cell_contents = value


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values that a program could find in the place of one, each with a word for it."""
    if isinstance(value, bool):
        yield repr(not value), not value
    elif isinstance(value, enum.Enum):
        yield from ((str(item), item) for item in type(value) if item is not value)
    elif isinstance(value, int):
        yield repr(value + 1), value + 1
    elif isinstance(value, float):
        yield repr(value + 0.5), value + 0.5
        yield repr(-value), -value
        yield "nan", float("nan")
    elif isinstance(value, str):
        for word in ("relu", "tanh", "sum", "mean", "other"):
            if word != value:
                yield repr(word), word
    elif isinstance(value, torch.dtype) and value.is_floating_point:
        yield "float64", torch.float64
    elif isinstance(value, tuple) and type(value) is tuple and value:
        for index, item in enumerate(value):
            for word, other in _others(item):
                yield f"({index}: {word})", (*value[:index], other, *value[index + 1 :])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for field in value._fields:
            for word, other in _others(getattr(value, field)):
                yield f"({field}: {word})", value._replace(**{field: other})
    elif isinstance(value, torch.Size):
        pass
    elif isinstance(value, (types.FunctionType, functools.partial)):
        yield "its negative", _negative(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for word, other in _others(getattr(value, field.name)):
                try:
                    yield f"({field.name}: {word})", dataclasses.replace(value, **{field.name: other})
                except Exception:
                    continue
    elif isinstance(value, nn.Module) and not list(value.parameters()):
        yield "Tanh()", nn.Tanh()
    elif isinstance(value, Tensor):
        yield "another tensor", _tensor_like(value)
        if value.is_floating_point():
            yield (
                "float64",
                _tensor_like(value).double()
                if not isinstance(value, nn.Parameter)
                else nn.Parameter(value.detach().double(), requires_grad=value.requires_grad),
            )


def _tensor_like(value: Tensor) -> Tensor:
    other = (value.detach() * 0.7 + 0.3).to(value.dtype) if value.is_floating_point() else value.detach().clone()
    if isinstance(value, nn.Parameter):
        return nn.Parameter(other, requires_grad=value.requires_grad)
    return other.requires_grad_(value.requires_grad)


def _negative(function: Any) -> Any:
    @functools.wraps(function)
    def negative(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return -result if isinstance(result, (Tensor, int, float)) and not isinstance(result, bool) else result

    return negative


def _in_place(place: Place) -> Iterator[Mutation]:
    """Changes of an object where it lies."""
    name, value = place.name, place.value
    if isinstance(value, Tensor):
        before = value.detach().clone()
        yield Mutation(f"{name}.copy_()", lambda: value.data.copy_(_moved(before)), lambda: value.data.copy_(before))
        data = value.data
        yield Mutation(f"{name}.data = …", lambda: setattr(value, "data", _moved(before)), lambda: setattr(value, "data", data))
        if value.dim() == 2 and value.is_leaf and not value._is_view():
            yield Mutation(
                f"{name}.t_()", lambda: value.detach().t_() if False else _transpose(value), lambda: _transpose(value)
            )
        if value.is_floating_point() and value.is_leaf:
            wanted = value.requires_grad
            yield Mutation(
                f"{name}.requires_grad_()", lambda: value.requires_grad_(not wanted), lambda: value.requires_grad_(wanted)
            )
    elif isinstance(value, nn.Module):
        hooks: list[Any] = []
        yield Mutation(
            f"{name}: forward hook",
            lambda: hooks.append(value.register_forward_hook(lambda module, given, result: _doubled(result))),
            lambda: hooks.pop().remove(),
        )
        yield Mutation(
            f"{name}: forward pre-hook",
            lambda: hooks.append(
                value.register_forward_pre_hook(lambda module, given: tuple(_doubled(item) for item in given))
            ),
            lambda: hooks.pop().remove(),
        )
        training = value.training
        yield Mutation(f"{name}.train()", lambda: value.train(not training), lambda: value.train(training))
        yield Mutation(
            f"{name}.forward = …",
            lambda: setattr(value, "forward", _negative(value.forward)),
            lambda: vars(value).pop("forward"),
        )
        yield Mutation(f"{name}.__class__ = …", lambda: _reclass(value), lambda: _unclass(value))
    elif isinstance(value, types.FunctionType):
        code = value.__code__
        if not code.co_freevars:
            yield Mutation(
                f"{name}.__code__ = …",
                lambda: setattr(value, "__code__", _changed_code(code)),
                lambda: setattr(value, "__code__", code),
            )
    elif isinstance(value, list) and value:
        yield Mutation(f"{name}.pop()", value.pop, functools.partial(value.append, value[-1]))
        yield Mutation(f"{name}.append()", lambda: value.append(value[-1]), value.pop)
    elif type(value) is dict and value and all(isinstance(key, str) for key in value) and "__builtins__" not in value:
        key, last = list(value.items())[-1]
        yield Mutation(f"{name}.pop({key!r})", lambda: value.pop(key), lambda: value.__setitem__(key, last))
    elif isinstance(value, set) and value:
        some = next(iter(value))
        yield Mutation(f"{name}.discard({some!r})", lambda: value.discard(some), lambda: value.add(some))


def _moved(before: Tensor) -> Tensor:
    return before * 0.5 + 0.25 if before.is_floating_point() else before.clone()


def _transpose(value: Tensor) -> None:
    with torch.no_grad():
        value.t_()


def _doubled(value: Any) -> Any:
    return value * 2 if isinstance(value, Tensor) and value.is_floating_point() else value


def _changed_code(code: types.CodeType) -> types.CodeType:
    """The same code with every number in it moved."""
    constants = tuple(
        item + 1 if isinstance(item, float) or (isinstance(item, int) and not isinstance(item, bool) and item > 1) else item
        for item in code.co_consts
    )
    return code.replace(co_consts=constants)


def _reclass(value: nn.Module) -> None:
    kind = type(value)

    class Other(kind):  # type: ignore[valid-type, misc]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return _doubled(super().forward(*args, **kwargs))

    value.__class__ = Other


def _unclass(value: nn.Module) -> None:
    value.__class__ = type(value).__mro__[1]
