"""Pickle a callable and its inputs for another process: by name if it can be imported, otherwise by value.

`pickle` writes functions and classes as names. Lambdas, closures, and definitions of the running program or of a notebook
have no name that another process could import. For those, the code is pickled, with the globals and closure cells it reads.
"""

from __future__ import annotations

import builtins
import importlib
import io
import linecache
import marshal
import pickle
import sys
import types
from abc import ABCMeta
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compile_inspect.errors import TargetError

# Py_TPFLAGS_HEAPTYPE: the class was created at run time.
_HEAP_TYPE_FLAG = 1 << 9
_PYTHON_ATTRIBUTES = ("__dict__", "__weakref__", "_abc_impl", "__slots__")


def dumps(value: object) -> bytes:
    """Pickle a value for `loads` in another process with the same Python; raises any exception of pickling."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(value)
    return pickle.dumps((pickler.lines, buffer.getvalue()))


def loads(data: bytes) -> Any:
    """Load a value that `dumps` wrote. Load only data from this process's parent: loading runs code."""
    lines, content = pickle.loads(data)
    for file, text in lines.items():
        # Readers of the source of a function (TorchScript, tracebacks) use this cache.
        linecache.cache[file] = (sum(map(len, text)), None, text, file)
    return pickle.loads(content)


class _Pickler(pickle.Pickler):
    """A pickler that writes functions and classes by value if they have no importable name."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.lines: dict[str, list[str]] = {}
        """Source lines of files that are not on disk, such as the cells of a notebook."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType) and not has_importable_name(value):
            self._store_source(value.__code__.co_filename)
            return _reduce_function(value)
        if isinstance(value, type) and value.__flags__ & _HEAP_TYPE_FLAG and not has_importable_name(value):
            return _reduce_class(value)
        reduce = _REDUCERS.get(type(value))
        return NotImplemented if reduce is None else reduce(value)

    def _store_source(self, file: str) -> None:
        if file not in self.lines and not Path(file).exists():
            text = linecache.getlines(file)
            if text:
                self.lines[file] = text


def has_importable_name(value: Any) -> bool:
    """Whether another process can get a function or class by importing its module.

    >>> has_importable_name(has_importable_name), has_importable_name(lambda: 0)
    (True, False)
    """
    name = getattr(value, "__module__", None)
    if not isinstance(name, str) or not is_importable(name):
        return False
    attribute: Any = sys.modules[name]
    for part in value.__qualname__.split("."):
        attribute = getattr(attribute, part, None)
    return attribute is value


def is_importable(name: str) -> bool:
    """Whether another process with the same search path can import a loaded module by name."""
    module = sys.modules.get(name)
    if name == "__main__" or module is None:
        return False
    if module is builtins or name in sys.builtin_module_names:
        return True
    top_level = name.partition(".")[0]
    loaded = getattr(sys.modules.get(top_level), "__spec__", None)
    # Not `importlib.util.find_spec`, which answers from `sys.modules`: a file that was loaded by its path is there too.
    finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
    try:
        found = next((spec for find in finders if find is not None and (spec := find(top_level, None)) is not None), None)
    except (ImportError, ValueError, AttributeError):
        return False
    return loaded is not None and found is not None and found.origin == loaded.origin


def _reduce_function(function: types.FunctionType) -> tuple[Any, ...]:
    name = function.__globals__.get("__name__")
    module = name if isinstance(name, str) else "__main__"
    by_name = is_importable(module) and vars(sys.modules[module]) is function.__globals__
    names = () if by_name else dict.fromkeys(_names_read(function.__code__))
    cells = function.__closure__ or ()
    state = {
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__qualname__": function.__qualname__,
        "__module__": function.__module__,
        "__doc__": function.__doc__,
        "__dict__": function.__dict__,
        "__annotations__": {} if not isinstance(function.__annotations__, dict) else function.__annotations__,
        "cells": [(cell, _contents(cell)) for cell in cells],
        "globals": {name: function.__globals__[name] for name in names if name in function.__globals__},
    }
    arguments = (marshal.dumps(function.__code__), module, by_name, function.__name__, cells)
    return _make_function, arguments, state, None, None, _fill_function


def _make_function(code: bytes, module: str, by_name: bool, name: str, cells: tuple[types.CellType, ...]) -> types.FunctionType:
    namespace = vars(importlib.import_module(module) if by_name else _module_for_values(module))
    return types.FunctionType(marshal.loads(code), namespace, name, None, cells or None)


def _fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    for cell, contents in state.pop("cells"):
        if contents:
            cell.cell_contents = contents[0]
    function.__globals__.update(state.pop("globals"))
    function.__dict__.update(state.pop("__dict__"))
    for name, value in state.items():
        setattr(function, name, value)


_modules_for_values: dict[str, types.ModuleType] = {}


def _module_for_values(name: str) -> types.ModuleType:
    """The module for definitions that were pickled by value; it can be imported by name, as torch's compilers require."""
    if name not in _modules_for_values:
        _modules_for_values[name] = sys.modules[name] = types.ModuleType(name)
        vars(_modules_for_values[name])["__builtins__"] = builtins
    return _modules_for_values[name]


def _names_read(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_read(constant)


def _contents(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # the cell is empty
        return ()


def _reduce_class(kind: type) -> tuple[Any, ...]:
    if type(kind) not in (type, ABCMeta):
        raise TargetError(f"the class {kind.__qualname__} has the metaclass {type(kind).__name__}: define it in a module")
    slots = kind.__dict__.get("__slots__", None)
    initial = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    initial |= {} if slots is None else {"__slots__": slots}
    excluded = {*_PYTHON_ATTRIBUTES, *initial, *((slots,) if isinstance(slots, str) else slots or ())}
    state = {name: value for name, value in vars(kind).items() if name not in excluded}
    return _make_class, (type(kind), kind.__name__, kind.__bases__, initial), state, None, None, _fill_class


def _make_class(metaclass: type, name: str, bases: tuple[type, ...], initial: dict[str, Any]) -> type:
    module = initial["__module__"]
    if isinstance(module, str) and not is_importable(module):
        _module_for_values(module)
    return types.new_class(name, bases, {"metaclass": metaclass}, lambda namespace: namespace.update(initial))


def _make_cell() -> types.CellType:
    return types.CellType()


def _make_proxy(mapping: dict[Any, Any]) -> types.MappingProxyType[Any, Any]:
    return types.MappingProxyType(mapping)


def _fill_class(kind: type, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(kind, name, value)


_REDUCERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    types.ModuleType: lambda value: (importlib.import_module, (value.__name__,)),
    types.CellType: lambda value: (_make_cell, ()),
    types.CodeType: lambda value: (marshal.loads, (marshal.dumps(value),)),
    types.MappingProxyType: lambda value: (_make_proxy, (dict(value),)),
    property: lambda value: (property, (value.fget, value.fset, value.fdel, value.__doc__)),
    staticmethod: lambda value: (staticmethod, (value.__func__,)),
    classmethod: lambda value: (classmethod, (value.__func__,)),
}
