"""Check whether Python objects are unchanged by comparing words of their memory: hundreds of objects in a microsecond.

Traversing objects costs several cache misses each. CPython has a version in every dictionary, and everything else that an
ordinary object consists of is in its own memory: its class, its slots, the pointer to its dictionary. Such words are read
together, from objects that are kept alive, and compared with their earlier values. A different word proves nothing; equal
words prove that nothing was assigned.

Experiments on sample objects find the positions of these words. In an interpreter where one of them fails, this check is
not available, and callers compare the objects themselves.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

_WORD_BYTES = 8
_HEADER_BYTES = 16
"""Bytes of the reference count, which changes all the time, and of the class."""
_PREFIX_WORDS = 4
"""Words in front of an object where CPython may store the pointer to its dictionary."""


class _AllMemory:
    """All memory as one array of words, except the first one, which no object has."""

    __array_interface__ = {"data": (_WORD_BYTES, True), "shape": (2**44 - 1,), "typestr": "<u8", "version": 3}  # noqa: RUF012


_memory: Any = None


def _read_words(addresses: list[int]) -> list[int]:
    return [int(word) for word in take(np.array(addresses, dtype=np.intp) // _WORD_BYTES - 1)]


def take(positions: Any) -> Any:
    """The words at positions that `WatchedWords.positions` returned; one call of numpy."""
    return _memory.take(positions)


class WatchedWords:
    """Words of memory that change whenever one of some objects does.

    `add` returns whether changes of an object show in its words. The objects are kept alive, and so is what their words
    point to: other objects could get the same addresses.
    """

    def __init__(self, often_assigned: Container[int] = ()) -> None:
        """`often_assigned` has the identities of objects that must not be watched, nor what depends on them."""
        self._often_assigned = often_assigned
        self._values: dict[int, Any] = {}
        self._kept_alive: list[Any] = []
        self._addresses: dict[int, set[int]] = {}
        """Addresses of words, with the identities of the objects for which they are watched."""
        self._first_values: dict[int, int] = {}
        """The first value of each word."""

    def add(self, value: Any) -> bool:
        """Watch an object from now on; returns False if its words do not show whether it has changed."""
        if id(value) in self._often_assigned:
            return False
        if id(value) in self._values:
            return True
        self._kept_alive.append(value)
        if is_immutable(value):
            return True
        memory = _memory_of(value) if supported() else None
        if memory is None:
            return False
        addresses = [address for _, address in memory.locations]
        words = _read_words(addresses)
        second_reading = _memory_of(value)
        if second_reading is None or second_reading.locations != memory.locations:  # another thread has replaced the dictionary
            return False
        self._values[id(value)] = value
        if not all(self.add(other) for other in memory.classes):
            del self._values[id(value)]
            return False
        self._kept_alive += [memory.locations, memory.referents]
        for address, word in zip(addresses, words, strict=True):
            self._addresses.setdefault(address, set()).add(id(value))
            self._first_values.setdefault(address, word)
        return True

    def positions(self) -> Any:
        """Positions of the words, for `take`."""
        return np.array(sorted(self._addresses), dtype=np.intp) // _WORD_BYTES - 1

    def first_values(self) -> bytes:
        """The first values of the words, in the order of `positions`."""
        return np.array([self._first_values[address] for address in sorted(self._addresses)], dtype=np.uint64).tobytes()

    def changed(self, before: bytes) -> Iterator[int]:
        """Identities of the objects whose words have changed since `take(positions()).tobytes()` gave `before`."""
        current_words = take(self.positions())
        addresses = sorted(self._addresses)
        for index in np.flatnonzero(current_words != np.frombuffer(before, dtype=current_words.dtype)):
            yield from self._addresses[addresses[index]]


_SCALARS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, types.CodeType)
_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)


@cache
def _immutable_types() -> frozenset[type]:
    import torch

    torch_types = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
    return frozenset((*_SCALARS, *_BUILT_IN, *torch_types))


def is_immutable(value: Any) -> bool:
    """Whether a value and everything in it never change.

    >>> is_immutable((1, "a", None)), is_immutable((1, [])), is_immutable(slice(0, 2))
    (True, False, True)
    """
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(is_immutable(item) for item in value)
    if kind is slice:
        return all(is_immutable(item) for item in (value.start, value.stop, value.step))
    return kind in _immutable_types()


@dataclass(frozen=True)
class _Memory:
    """The positions of an object's own words, and the classes whose words count as its own."""

    locations: list[tuple[int, int]]
    """Identities of the objects that contain the words, and addresses."""
    referents: list[Any]
    """These objects, and what the words may point to."""
    classes: tuple[type, ...] = ()


def _memory_of(value: Any) -> _Memory | None:
    """What to watch of an object; None if its words do not show every change."""
    kind = type(value)
    if kind is dict:
        return _Memory([_version(value)], [])
    if kind is OrderedDict:
        return _Memory([_version(value), (id(value), id(value) + _order_offset())], [])
    if kind is types.FunctionType:
        dictionary = vars(value)
        locations = [*_own_words(value, kind.__basicsize__, {kind.__weakrefoffset__}), _version(dictionary)]
        return _Memory(locations, [dictionary, gc.get_referents(value)])
    if kind in (types.CellType, property, staticmethod, classmethod):
        return _Memory(_own_words(value, kind.__basicsize__, set()), gc.get_referents(value))
    if kind is tuple:
        return _Memory([], [])
    if kind is types.ModuleType:
        return _Memory([(id(value), id(value) + _WORD_BYTES), _version(vars(value))], [vars(value)])
    if isinstance(value, type):
        return _memory_of_class(value)
    return _memory_of_instance(value)


def _version(dictionary: dict[Any, Any]) -> tuple[int, int]:
    return id(dictionary), id(dictionary) + _version_offset()


def _own_words(value: Any, size: int, leave_out: set[int]) -> list[tuple[int, int]]:
    """Every word of an object except the reference count."""
    return [(id(value), id(value) + offset) for offset in range(_WORD_BYTES, size, _WORD_BYTES) if offset not in leave_out]


def _memory_of_class(cls: type) -> _Memory | None:
    """A class's class, the version of its dictionary, and what it stores elsewhere: its bases and its names."""
    if not cls.__flags__ & HEAP_TYPE_FLAG:
        return _Memory([], [])  # it cannot be changed
    parts = (cls.__mro__, cls.__name__, cls.__qualname__)
    pointers = [_pointers_to(cls, part, range(0, _CLASS_SIZE, _WORD_BYTES)) for part in parts]
    if not all(pointers):
        return None
    dictionary = class_dictionary(cls)
    locations = [(id(cls), id(cls) + _WORD_BYTES), *((id(cls), address) for addresses in pointers for address in addresses)]
    metaclass: Any = type(cls)
    return _Memory([*locations, _version(dictionary)], [dictionary, parts], (*cls.__mro__[1:], *metaclass.__mro__))


def class_dictionary(cls: type) -> dict[str, Any]:
    """The dictionary behind a class's read-only `__dict__`."""
    dictionary: dict[str, Any] = next(item for item in gc.get_referents(cls.__dict__) if type(item) is dict)
    return dictionary


def _memory_of_instance(value: Any) -> _Memory | None:
    """The words of an instance of a class made by a `class` statement: class, slots, dictionary; None for others."""
    cls = type(value)
    if not all(base is object or base.__flags__ & HEAP_TYPE_FLAG for base in cls.__mro__) or _hidden_bytes(cls):
        return None
    locations, referents = _own_words(value, cls.__basicsize__, {cls.__weakrefoffset__}), gc.get_referents(value)
    if cls.__dictoffset__ == 0:
        return _Memory(locations, referents, (cls,))
    dictionary = object.__getattribute__(value, "__dict__")
    pointers = _pointers_to(value, dictionary, range(-_PREFIX_WORDS * _WORD_BYTES, cls.__basicsize__, _WORD_BYTES))
    if not pointers or type(dictionary) is not dict:
        return None
    locations += [*((id(value), pointer) for pointer in pointers), _version(dictionary)]
    return _Memory(locations, [dictionary, *referents], (cls,))


_CLASS_SIZE: int = vars(type)["__basicsize__"].__get__(type)
HEAP_TYPE_FLAG = 1 << 9
"""The flag of classes that are created at run time, by Python or by an extension."""


_slot_counts: WeakKeyDictionary[type, int] = WeakKeyDictionary()


def _slot_count(cls: type) -> int:
    if cls not in _slot_counts:
        entries = (item for base in cls.__mro__ for item in vars(base).values())
        _slot_counts[cls] = sum(type(item) is types.MemberDescriptorType for item in entries)
    return _slot_counts[cls]


def _hidden_bytes(cls: type) -> int:
    """Bytes of an instance that are not header, slots, or pointers to dictionary and weak references."""
    pointers = (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return cls.__basicsize__ - _HEADER_BYTES - _WORD_BYTES * (_slot_count(cls) + pointers)


def _pointers_to(owner: Any, content: Any, offsets: range) -> list[int]:
    """The addresses of the words, at some offsets of an object, that point to another one."""
    addresses = [id(owner) + offset for offset in offsets]
    return [address for address, word in zip(addresses, _read_words(addresses), strict=True) if word == id(content)]


@cache
def supported() -> bool:
    """Whether changes of objects show in their words in this interpreter, according to all of `_experiments`."""
    global _memory
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or sys.byteorder != "little":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or _WORD_BYTES * np.dtype(np.intp).itemsize != 64:
        return False
    _memory = np.asarray(_AllMemory())
    return (
        _version_offset() > 0 and _order_offset() > 0 and all(_is_change_detected(*experiment) for experiment in _experiments())
    )


@cache
def _version_offset() -> int:
    """The offset of a dictionary's version: the one word that changes when an entry gets a new value; 0 if there is none."""
    sample: dict[str, Any] = {"a": 1.0, "b": 2.0}
    addresses = [id(sample) + offset for offset in range(_HEADER_BYTES, dict.__basicsize__, _WORD_BYTES)]
    before = _read_words(addresses)
    sample["a"] = 3.0
    changed = [address for address, was, now in zip(addresses, before, _read_words(addresses), strict=True) if was != now]
    return changed[0] - id(sample) if len(changed) == 1 else 0


@cache
def _order_offset() -> int:
    """The offset of an OrderedDict's order counter: the one word that is different every time; 0 if there is none."""
    sample = OrderedDict.fromkeys("abcd")
    addresses = [id(sample) + offset for offset in range(dict.__basicsize__, OrderedDict.__basicsize__, _WORD_BYTES)]
    readings = [_read_words(addresses)]
    for _ in range(len(sample) * 2):
        sample.move_to_end(next(iter(sample)))
        readings.append(_read_words(addresses))
    unique = [
        address
        for address, words in zip(addresses, zip(*readings, strict=True), strict=True)
        if len(set(words)) == len(readings)
    ]
    return unique[0] - id(sample) if len(unique) == 1 else 0


def _is_change_detected(value: Any, change: Callable[[], object]) -> bool:
    """Whether a change shows in the words of an object every time."""
    classes, addresses = [value], list[int]()
    while classes:
        memory = _memory_of(classes.pop())
        if memory is None:
            return False
        classes += memory.classes
        addresses += [address for _, address in memory.locations]
    for _ in range(40):  # often enough for the interpreter to specialize the instructions
        before = _read_words(addresses)
        change()
        if _read_words(addresses) == before:
            return False
    return True


def _experiments() -> Iterator[tuple[Any, Callable[[], object]]]:
    class Plain:
        def __init__(self) -> None:
            self.first, self.second = 0, 0

    class Slotted:
        __slots__ = ("first",)
        first: Any

    class Other(Plain):
        pass

    described = property(lambda _: 0)
    plain, slotted, cls, counter = Plain(), Slotted(), type("Changed", (Plain,), {}), iter(range(1000, 10**6))
    table: dict[Any, Any] = {"a": 0}
    ordered: OrderedDict[str, Any] = OrderedDict(a=0, b=0)
    module = types.ModuleType("experiment")
    dictionary = vars(plain)  # created now, so that it is the object's from here on

    def function(first: Any = 0) -> Any:
        return first + cell

    cell: Any = 0
    assert function.__closure__ is not None

    def assign_attribute() -> None:
        plain.first = next(counter)

    def assign_from_outside() -> None:
        dictionary["second"] = next(counter)

    def add_and_remove() -> None:
        plain.third = next(counter)  # type: ignore[attr-defined]
        del plain.third  # type: ignore[attr-defined]

    def replace_dictionary() -> None:
        plain.__dict__ = dict(vars(plain))

    def replace_class() -> None:
        plain.__class__ = Other if type(plain) is Plain else Plain

    def assign_slot() -> None:
        slotted.first = next(counter)

    def assign_item() -> None:
        table["a"] = next(counter)

    def assign_global() -> None:
        module.first = next(counter)  # type: ignore[attr-defined]

    def assign_cell() -> None:
        nonlocal cell
        cell = next(counter)

    def replace_code() -> None:
        function.__code__ = function.__code__.replace(co_firstlineno=next(counter) + 1)

    def replace_defaults() -> None:
        function.__defaults__ = (next(counter),)

    def assign_class_attribute() -> None:
        cls.first = next(counter)  # type: ignore[attr-defined]

    def rename() -> None:
        cls.__name__ = f"Changed{next(counter)}"

    def replace_getter() -> None:
        described.__init__(lambda _: next(counter))  # type: ignore[misc]

    def replace_bases() -> None:
        cls.__bases__ = (Other,) if cls.__bases__ == (Plain,) else (Plain,)

    yield plain, assign_attribute
    yield plain, assign_from_outside
    yield plain, add_and_remove
    yield plain, replace_class
    yield slotted, assign_slot
    yield table, assign_item
    yield table, lambda: table.update(a=next(counter))
    yield table, lambda: table.pop("b", table.setdefault("b", 0))
    yield ordered, lambda: ordered.move_to_end(next(iter(ordered)))
    yield ordered, lambda: ordered.__setitem__("a", next(counter))
    yield module, assign_global
    yield function.__closure__[0], assign_cell
    yield function, replace_code
    yield function, replace_defaults
    yield cls, assign_class_attribute
    yield cls(), assign_class_attribute
    yield cls, rename
    yield described, replace_getter
    yield cls, replace_bases
    yield plain, replace_dictionary
