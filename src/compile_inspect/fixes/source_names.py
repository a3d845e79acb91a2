"""Find the name under which a callable can be loaded again from its source file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from compile_inspect.errors import InspectError, TargetError
from compile_inspect.records.locations import is_library_file
from compile_inspect.target import find_object
from compile_inspect.torch_private import dynamo_state

_REMEDY = 'define it at the top level of a file and import it from there, or name it as "file.py:name"'


def specification_of(function: Callable[..., Any]) -> str:
    """The specification, such as `/home/me/model.py:model`, that names a callable at the top level of a file.

    Fixes are tried on a second copy of the program, which is loaded from its files. Raises `TargetError` if the callable
    has no name there.
    """
    function = dynamo_state.original_function(function)
    for module, name in _candidates(function):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_file() and not is_library_file(file) and _names(module, name, function):
            # A module of a package is loaded by its name, since it may import its neighbors relatively.
            return f"{module.__name__ if _is_in_package(module) else Path(file).resolve()}:{name}"
    described = getattr(function, "__qualname__", None) or f"an instance of {type(function).__qualname__}"
    raise TargetError(f"the source of {described} cannot be found, so no fix can be tried: {_REMEDY}")


def function_of(specification: str) -> Callable[..., Any]:
    """The callable that a specification names."""
    value = find_object(specification)
    if not callable(value) or isinstance(value, type):
        raise TargetError(f"{specification} is a {type(value).__name__}, which cannot be called with the example inputs")
    function: Callable[..., Any] = value
    return function


def _candidates(function: Callable[..., Any]) -> Iterator[tuple[ModuleType, str]]:
    """Modules and names that may refer to a callable, the most likely first."""
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, (type, ModuleType)):
        method = getattr(function, "__name__", "")
        yield from ((module, f"{name}.{method}") for module, name in _top_level_names(owner))
        return
    name = getattr(function, "__qualname__", None)
    if home is not None and name and "<" not in name:
        yield home, name
    yield from _top_level_names(function)


def _top_level_names(value: Any) -> Iterator[tuple[ModuleType, str]]:
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) and not is_library_file(str(module.__file__)):
            yield from ((module, name) for name, item in list(vars(module).items()) if item is value)


def _names(module: ModuleType, name: str, function: Callable[..., Any]) -> bool:
    """Whether a dotted name in a module refers to the callable, or to a compiled version of it."""
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except (AttributeError, InspectError):
            return False
    value = dynamo_state.original_function(value)
    return bool(value is function or value == function)


def _is_in_package(module: ModuleType) -> bool:
    return bool(getattr(module, "__package__", "")) and module.__name__ != "__main__"
