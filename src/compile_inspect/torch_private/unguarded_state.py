"""What a captured function depends on and Dynamo does not guard, watched through cheap indicators of a change.

Dynamo guards values. It does not guard which class a name refers to, the methods of classes, the code of methods, what an
import finds, attributes whose lookup failed inside `try`, the environment, or what abstract classes have registered. Each
has an indicator that can be read in nanoseconds, such as the version of a dictionary or the identity of an object. It
changes whenever the thing itself changes, and sometimes when it does not. So a changed indicator proves nothing: the function
is captured again.
"""

from __future__ import annotations

import abc
import builtins
import dis
import enum
import os
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from compile_inspect.torch_private.object_memory import class_dictionary

_HEAP_CLASS_FLAG = 1 << 9
"""The flag of classes that Python code created; others cannot be changed."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CODE_LIKE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
_MAX_MODULE_DEPTH = 3
_LAZY_ATTRIBUTES = (
    "__slotnames__",
    "__annotations__",
    "__annotate__",
    "__annotations_cache__",
    "__abstractmethods__",
    "__doc__",
)
"""Entries that Python itself adds to a class on demand."""


class Surroundings:
    """Indicators for the surroundings of one capture. `check(scope)` is one C++ call for all of them."""

    def __init__(self, values: Iterable[Any], traced: Iterable[types.CodeType], *, often_assigned: bool = False) -> None:
        """`often_assigned`: objects often get new attribute values, so versions of their dictionaries are poor indicators."""
        from torch._C._dynamo.guards import RootGuardManager

        values, traced = list({id(value): value for value in _with_items(values)}.values()), list(traced)
        self._arguments, self._often_assigned = (values, traced), often_assigned
        self.contents: list[Any] = []
        """Everything that the indicators represent, so that two of these can be compared."""
        self.scope: dict[str, Any] = {}
        self._root = RootGuardManager()
        self._keys: dict[int, str] = {}
        self._owned: set[str] = set()
        """Keys of watched objects in the scope; objects under other keys are only kept alive."""
        codes = [code for code in traced if not _is_of_torch(code.co_filename)]
        self._traced_names = {word for code in traced for word in (*code.co_names, *code.co_consts) if isinstance(word, str)}
        functions = list(_functions(values, set(traced)))
        named = list(self._names(functions, codes, values))
        for cls in dict.fromkeys(_classes([*values, *named])):
            self._watch_class(cls)
        for function in functions:
            self._watch_code(function)
        self._watch_imports(codes)
        self._watch_absent(codes, values)
        self._watch_shadows(functions, values)
        self._watch_keys(values)
        if any(value is os or value is os.environ for value in [*values, *named]):
            self._watch_version(os.environ._data, "the environment")  # type: ignore[attr-defined]
            self.contents.append(dict(os.environ))
        if any(isinstance(value, abc.ABCMeta) for value in [*values, *named]):
            token = abc.get_cache_token()
            self.contents.append(token)
            self._root.add_lambda_guard(lambda _: abc.get_cache_token() == token, ["classes registered with an ABC"], None)
        self.check: Callable[[dict[str, Any]], bool] = self._root.check

    def changed(self) -> str:
        """The first indicator that changed, as text; empty if none did."""
        outcome = self._root.check_verbose(self.scope)
        return "" if outcome.result else str((outcome.verbose_code_parts or ["something"])[0])

    def refresh(self, *, often_assigned: bool = False) -> Surroundings:
        """Current indicators of the same things: if `contents` are equal, nothing has changed."""
        return Surroundings(*self._arguments, often_assigned=often_assigned)

    def without(self, is_covered: Callable[[Any], bool]) -> Callable[[dict[str, Any]], Any]:
        """The check of everything except the objects for which `is_covered` returns true."""
        remaining = {self._keys[id(owner)] for key, owner in self.scope.items() if key in self._owned and not is_covered(owner)}
        if not remaining and not self._root.get_leaf_guards():
            return type  # truthy for anything, and nothing is quicker to call
        root = self._root.get_source()
        clone = self._root.clone_manager(
            lambda manager: manager.get_source() == root or manager.get_source().partition(":")[0] in remaining
        )
        check: Callable[[dict[str, Any]], bool] = clone.check
        return check

    def _manager(self, owner: Any) -> tuple[Any, str]:
        """The guard manager of an object, which the scope keeps alive, and its source."""
        key = self._keys.setdefault(id(owner), f"o{len(self._keys)}")
        self._owned.add(key)
        self.scope[key] = owner
        return self._root.dict_getitem_manager(key=key, source=key, example_value=owner, guard_manager_enum=_plain()), key

    def _watch_version(self, dictionary: dict[Any, Any], description: str) -> None:
        self._manager(dictionary)[0].add_dict_version_guard(dictionary, [description], None)

    def _watch_entry(self, owner: dict[Any, Any], key: str, description: str) -> None:
        manager, source = self._manager(owner)
        entry = manager.dict_getitem_manager(
            key=key, source=f"{source}:{key}", example_value=owner[key], guard_manager_enum=_plain()
        )
        entry.add_id_match_guard(id(owner[key]), [description], None)
        self.scope.setdefault(f"alive {id(owner[key])}", owner[key])  # so that no other object gets its id
        self.contents.append((Identity(owner), key, Identity(owner[key])))

    def _watch_class(self, cls: type) -> None:
        name, dictionary = cls.__qualname__, class_dictionary(cls)
        manager, source = self._manager(cls)
        manager.add_type_match_guard(id(type(cls)), [f"the metaclass of class {name}"], None)
        inside = manager.type_dict_manager(source=f"{source}:dict", example_value=dictionary, guard_manager_enum=_plain())
        inside.add_dict_version_guard(dictionary, [f"the attributes of class {name}"], None)
        order = manager.type_mro_manager(source=f"{source}:mro", example_value=cls.__mro__, guard_manager_enum=_plain())
        order.add_id_match_guard(id(cls.__mro__), [f"the bases of class {name}"], None)
        self.scope[f"bases {name} {id(cls)}"] = cls.__mro__
        entries = tuple((key, Identity(value)) for key, value in vars(cls).items() if self._may_matter(key, value))
        self.contents.append((Identity(cls), type(cls), entries, tuple(map(Identity, cls.__mro__))))
        for attribute in sorted(self._traced_names & {"__name__", "__qualname__"}):  # these are not in the dictionary
            text = getattr(cls, attribute)
            named = manager.getattr_manager(
                attr=attribute, source=f"{source}:{attribute}", example_value=text, guard_manager_enum=_plain()
            )
            named.add_equals_match_guard(text, [f"the name of class {name}"], None)
            self.contents.append((Identity(cls), attribute, text))
        if issubclass(cls, enum.Enum):
            for member in cls.__members__.values():  # Dynamo may treat them as constants
                self._watch_version(vars(member), f"{name}.{member.name}")
                self.contents.append((Identity(member), tuple((key, Identity(value)) for key, value in vars(member).items())))

    def _may_matter(self, name: str, value: Any) -> bool:
        """Whether traced code mentions an attribute of a class, or the attribute is anything but a number or a string."""
        return name in self._traced_names or (not isinstance(value, _PLAIN) and name not in _LAZY_ATTRIBUTES)

    def _watch_code(self, function: types.FunctionType) -> None:
        name = function.__qualname__
        manager, source = self._manager(function)
        code = manager.code_manager(source=f"{source}:code", example_value=function.__code__, guard_manager_enum=_plain())
        code.add_id_match_guard(id(function.__code__), [f"the code of {name}"], None)
        self.scope[f"code {name} {id(function)}"] = function.__code__
        self.contents.append((Identity(function), Identity(function.__code__)))

    def _names(self, functions: list[types.FunctionType], codes: list[types.CodeType], values: list[Any]) -> Iterator[Any]:
        """Watch what names and attributes of modules and objects refer to, where that is code; yields the values."""
        all_names = {name for code in codes for name in code.co_names}
        by_file: dict[str, set[str]] = {}
        for code in codes:  # nested functions use the globals of their file too
            by_file.setdefault(code.co_filename, set()).update(code.co_names)
        owners = [(function.__globals__, by_file[function.__code__.co_filename]) for function in functions]
        owners += [(vars(value), all_names) for value in values if _is_user_object(value)]
        visited: set[tuple[int, str]] = set()
        for owner, names in owners:
            yield from self._entries(owner, names, all_names, visited, 0)
        for function in functions:
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                value = _content(cell)
                if isinstance(value, _CODE_LIKE):
                    self._watch_cell(cell, f"{name} in {function.__qualname__}")
                    yield value

    def _entries(
        self, owner: Any, names: set[str], all_names: set[str], visited: set[tuple[int, str]], depth: int
    ) -> Iterator[Any]:
        if type(owner) is not dict:
            return
        for name in sorted(names):
            value = owner.get(name)
            if not isinstance(value, _CODE_LIKE) or (id(owner), name) in visited:
                continue
            visited.add((id(owner), name))
            self._watch_entry(owner, name, f"what {name} refers to")
            yield value
            if isinstance(value, types.ModuleType) and depth < _MAX_MODULE_DEPTH and not _is_library(value):
                yield from self._entries(vars(value), all_names, all_names, visited, depth + 1)

    def _watch_cell(self, cell: types.CellType, description: str) -> None:
        content = cell.cell_contents
        manager, source = self._manager(cell)
        inside = manager.getattr_manager(
            attr="cell_contents", source=f"{source}:contents", example_value=content, guard_manager_enum=_plain()
        )
        inside.add_id_match_guard(id(content), [description], None)
        self.scope.setdefault(f"alive {id(content)}", content)
        self.contents.append((Identity(cell), Identity(content)))

    def _watch_imports(self, codes: list[types.CodeType]) -> None:
        for code in codes:
            for instruction in dis.get_instructions(code):
                name = instruction.argval
                if instruction.opname == "IMPORT_NAME" and isinstance(name, str) and name in sys.modules:
                    self._watch_entry(sys.modules, name, f"what import {name} finds")

    def _watch_absent(self, codes: list[types.CodeType], values: list[Any]) -> None:
        """Watch attributes that were missing when they were looked up where an exception would be caught."""
        names = {name for code in codes for name in (*_guarded_attributes(code), *_queried_attributes(code))}
        if not names:
            return
        absent = []
        for value in values:
            if not (_is_user_object(value) or isinstance(value, (types.ModuleType, types.FunctionType))):
                continue
            missing = frozenset(name for name in names if not _has(value, name))
            dictionaries = [vars(value)] + [
                dictionary for key in _MODULE_DICTIONARIES if type(dictionary := vars(value).get(key)) is dict
            ]
            absent += [(dictionary, missing) for dictionary in dictionaries if missing]
            self.contents.append((Identity(value), missing))
        if not self._often_assigned:
            for dictionary, _ in absent:
                self._watch_version(dictionary, "attributes of an object")
        elif absent:
            self._root.add_lambda_guard(
                lambda _: all(missing.isdisjoint(dictionary) for dictionary, missing in absent),
                ["an attribute that was missing"],
                None,
            )

    def _watch_shadows(self, functions: list[types.FunctionType], values: list[Any]) -> None:
        """Watch names that would shadow others: globals before built-ins, attributes before parameters."""
        shadows: dict[int, tuple[dict[str, Any], set[str]]] = {}
        for function in functions:
            space = function.__globals__
            shadowing_names = {name for name in function.__code__.co_names if name not in space and hasattr(builtins, name)}
            shadows.setdefault(id(space), (space, set()))[1].update(shadowing_names)
        for value in values:
            if _is_user_object(value):
                parts = [part for key in _MODULE_DICTIONARIES if isinstance(part := vars(value).get(key), dict)]
                shadowing_names = {
                    name for part in parts for name in part if name in self._traced_names and name not in vars(value)
                }
                shadows.setdefault(id(vars(value)), (vars(value), set()))[1].update(shadowing_names)
        for space, names in shadows.values():
            for name in sorted(names):
                self._manager(space)[0].add_dict_contains_guard(False, name, [f"a new {name}"], None)
                self.contents.append((Identity(space), name, name in space))

    def _watch_keys(self, values: list[Any]) -> None:
        """Watch the keys of dictionaries that were read: Dynamo does not guard all ways to iterate over them."""
        spaces = {id(vars(value)) for value in values if hasattr(value, "__dict__")}
        for value in values:
            if isinstance(value, OrderedDict) and value:
                keys = list(value)
                order = lambda other, keys=keys: list(other) == keys  # noqa: E731
                self._manager(value)[0].add_lambda_guard(order, ["the order of a dictionary"], None)
                self.contents.append((Identity(value), tuple(keys)))
            if type(value) is not dict or id(value) in spaces:
                continue
            if self._often_assigned:
                self._manager(value)[0].add_dict_length_check_guard(len(value), ["the length of a dictionary"], None)
            else:
                self._watch_version(value, "the keys of a dictionary")
            self.contents.append((Identity(value), tuple(value)))


_MODULE_DICTIONARIES = ("_parameters", "_buffers", "_modules")


class Identity:
    """Equal to a wrapper of the very same object, which it keeps alive."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


@cache
def _plain() -> Any:
    from torch._dynamo.guards import GuardManagerType

    return GuardManagerType.GUARD_MANAGER


@cache
def _torch_folder() -> str:
    import torch

    return str(Path(torch.__file__).parent)


def _is_of_torch(filename: str) -> bool:
    return filename.startswith(_torch_folder())


def _is_library(module: types.ModuleType) -> bool:
    top = module.__name__.partition(".")[0]
    return top == "torch" or top in sys.stdlib_module_names


def _is_user_object(value: Any) -> bool:
    """Whether a value is an instance, with a dictionary, of a class that Python code created."""
    if isinstance(value, (type, types.FunctionType, types.ModuleType)) or not type(value).__flags__ & _HEAP_CLASS_FLAG:
        return False
    return type(getattr(value, "__dict__", None)) is dict


def _has(value: Any, name: str) -> bool:
    dictionaries = [
        vars(value),
        *(vars(value).get(key) or {} for key in _MODULE_DICTIONARIES),
        *(vars(cls) for cls in type(value).__mro__),
    ]
    return any(name in dictionary for dictionary in dictionaries)


def _guarded_attributes(code: types.CodeType) -> Iterator[str]:
    """Names of attributes read inside a `try` that has an `except`."""
    bytecode: Any = dis.Bytecode(code)
    instructions = list(bytecode)
    following = {one.offset: other.opname for one, other in pairwise(instructions)}
    ranges = [(entry.start, entry.end) for entry in bytecode.exception_entries if _catches(following, entry.target)]
    for instruction in instructions:
        inside = any(start <= instruction.offset < end for start, end in ranges)
        if inside and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            yield str(instruction.argval)


def _queried_attributes(code: types.CodeType) -> Iterator[str]:
    """Names that `hasattr` or `getattr` may look up: the strings in code that mentions these functions."""
    if {"hasattr", "getattr"} & set(code.co_names):
        yield from (text for text in code.co_consts if isinstance(text, str) and text.isidentifier())


def _catches(following: dict[int, str], target: int) -> bool:
    return following.get(target, "") not in ("WITH_EXCEPT_START", "")


def _with_items(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and the classes and functions in containers among them: Dynamo may treat these as constants."""
    for value in values:
        yield value
        items = value.values() if type(value) is dict else value if type(value) in (list, tuple, set, frozenset) else ()
        yield from (item for item in items if isinstance(item, (type, types.FunctionType)))


def _classes(values: Iterable[Any]) -> Iterator[type]:
    """The mutable classes among some values, and those of the values, with all their bases."""
    for value in values:
        for kind in (type(value), value):
            if isinstance(kind, type) and kind is not type:
                for base in (*type.mro(kind), *type.mro(type(kind))):
                    if base.__flags__ & _HEAP_CLASS_FLAG:
                        yield base


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _functions(values: list[Any], traced: set[types.CodeType]) -> Iterator[types.FunctionType]:
    """The traced Python functions that are among some values or methods of their classes."""
    visited: set[int] = set()
    candidates = [function for value in values for function in _functions_within(value)]
    for cls in dict.fromkeys(_classes(values)):
        candidates += [function for value in vars(cls).values() for function in _functions_within(value)]
    for function in candidates:
        if id(function) not in visited and function.__code__ in traced and not _is_of_torch(function.__code__.co_filename):
            visited.add(id(function))
            yield function


def _functions_within(value: Any) -> Iterator[types.FunctionType]:
    """The Python functions that a value is or wraps."""
    for _ in range(8):
        if isinstance(value, types.FunctionType):
            yield value
            value = getattr(value, "__wrapped__", None)
        elif isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                if isinstance(part, types.FunctionType):
                    yield part
            return
        elif isinstance(value, (staticmethod, classmethod, types.MethodType)):
            value = value.__func__
        else:
            value = getattr(value, "func", None) if type(value).__module__ == "functools" else None
        if value is None:
            return
