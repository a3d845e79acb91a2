"""Words of memory tell every change of the objects they are watched for."""

from __future__ import annotations

import enum
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compile_inspect.torch_private.object_memory import WatchedWords, is_immutable, supported, take

pytestmark = pytest.mark.skipif(not supported(), reason="this interpreter keeps no versions of dictionaries")


def test_the_interpreters_of_ci_are_supported() -> None:
    if sys.implementation.name == "cpython" and sys.version_info[:2] in ((3, 11), (3, 12)):
        assert supported()


class Plain:
    kind = "plain"

    def __init__(self) -> None:
        self.a, self.b = 1, 2


class Slotted:
    __slots__ = ("a", "b")


class Both(Slotted):
    def __init__(self) -> None:
        self.a, self.b, self.c = 1, 2, 3


class Color(enum.Enum):
    RED = 1


KEYS = st.sampled_from("abcde")
VALUES = st.one_of(st.integers(300, 10_000), st.floats(allow_nan=False), st.text(min_size=2, max_size=4))


def set_attribute(value: Any, key: str, content: Any) -> None:
    setattr(value, key, content)


def remove_attribute(value: Any, key: str, _: Any) -> None:
    if hasattr(value, key):
        delattr(value, key)


def through_dictionary(value: Any, key: str, content: Any) -> None:
    vars(value)[key] = content


def set_item(value: Any, key: str, content: Any) -> None:
    value[key] = content


def remove_item(value: Any, key: str, _: Any) -> None:
    value.pop(key, None)


def merge(value: Any, key: str, content: Any) -> None:
    value |= {key: content}


def empty(value: Any, _: str, __: Any) -> None:
    value.clear()


def to_end(value: Any, key: str, _: Any) -> None:
    if key in value:
        value.move_to_end(key)


OF_OBJECTS = (set_attribute, remove_attribute, through_dictionary)
OF_DICTIONARIES = (set_item, remove_item, merge, empty)
KINDS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], Callable[[Any], Any]]] = {
    "object": (Plain, OF_OBJECTS, lambda value: list(vars(value).items())),
    "module": (torch.nn.Module, OF_OBJECTS, lambda value: [(key, id(item)) for key, item in vars(value).items()]),
    "slots": (Slotted, (), lambda value: [getattr(value, key, None) for key in "ab"]),
    "slots and dictionary": (Both, OF_OBJECTS, lambda value: [getattr(value, key, None) for key in "abcde"]),
    "python module": (lambda: types.ModuleType("some"), OF_OBJECTS, lambda value: list(vars(value).items())),
    "dictionary": (dict, OF_DICTIONARIES, lambda value: list(value.items())),
    "ordered dictionary": (OrderedDict, (*OF_DICTIONARIES, to_end), lambda value: list(value.items())),
    "class": (lambda: type("Made", (Plain,), {}), (set_attribute,), lambda value: [getattr(value, key, 0) for key in "abcde"]),
}


@pytest.mark.parametrize("kind", [kind for kind, (_, operations, _) in KINDS.items() if operations])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_change_shows(kind: str, data: st.DataObject) -> None:
    make, operations, content = KINDS[kind]
    value, words = make(), WatchedWords()
    assert words.add(value)
    places = words.positions()
    for operation in data.draw(st.lists(st.sampled_from(operations), min_size=1, max_size=12)):
        before, seen = content(value), take(places).tobytes()
        try:
            operation(value, data.draw(KEYS), data.draw(VALUES))
        except AttributeError:  # vars() of an object with slots has not all of them
            continue
        if content(value) != before:
            assert take(places).tobytes() != seen
            assert list(words.changed(seen))


def test_slots_show() -> None:
    value, words = Slotted(), WatchedWords()
    assert words.add(value)
    places = words.positions()
    for content in (1.5, None, "x"):
        seen = take(places).tobytes()
        value.a = content
        assert take(places).tobytes() != seen


class Listed(list[int]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {1},
        bytearray(b"a"),
        iter([1]),
        Listed(),
        torch.ones(1),
        torch.Generator(),
        memoryview(b"a"),
        types.SimpleNamespace(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_change_outside_of_its_words_is_left_to_others(value: Any) -> None:
    assert not WatchedWords().add(value)


@pytest.mark.parametrize("value", [1, "a", None, (1, ("b",)), torch.float32, torch.device("cpu"), torch.Size([2]), Color.RED])
def test_values_that_can_be_watched(value: Any) -> None:
    assert WatchedWords().add(value)


def test_a_tuple_of_lists_is_not_immutable() -> None:
    assert not is_immutable((1, [2]))
    assert is_immutable((1, frozenset({2})))


def test_another_class_shows() -> None:
    class Other(Plain):
        pass

    value, words = Plain(), WatchedWords()
    words.add(value)
    seen = take(words.positions()).tobytes()
    value.__class__ = Other
    assert take(words.positions()).tobytes() != seen


def test_memory_is_held() -> None:
    words = WatchedWords()
    for number in range(100):
        value = Plain()
        value.a = number
        words.add(value)
    del value
    seen = take(words.positions()).tobytes()
    others = [Plain() for _ in range(1000)]
    assert take(words.positions()).tobytes() == seen
    assert len(others) == 1000
