"""Convert records to JSON and back.

The conversion uses the type hints of the dataclasses, so a new field needs no code here. Unknown fields are ignored and missing
fields get their defaults, so an older reader can open a file with additional fields. Nothing from the file is evaluated.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

from compile_inspect.errors import CaptureError

Record = TypeVar("Record")
Decoder = Callable[[Any], Any]


def to_data(value: Any) -> Any:
    """Convert a record to data for `json.dumps`: enums by name, without fields at their defaults.

    >>> from compile_inspect.records import Location
    >>> to_data(Location("model.py", 3))
    {'file': 'model.py', 'line': 3}
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (tuple, list)):
        return [to_data(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    return {
        name: to_data(item)
        for name, default in _defaults(cast(Hashable, type(value)))
        if (item := getattr(value, name)) is not default and item != default
    }


def from_data(kind: type[Record], data: Any) -> Record:
    """Rebuild a record of type `kind` from the result of `to_data`.

    >>> from compile_inspect.records import Location
    >>> from_data(Location, {"file": "model.py", "line": 3})
    Location(file='model.py', line=3, function='', code='')
    """
    try:
        return cast(Record, _decoder(cast(Hashable, kind))(data))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CaptureError(
            f"the capture contains a {kind.__name__} that cannot be read ({error}); it may be damaged: record again"
        ) from error


@cache
def _defaults(kind: Hashable) -> tuple[tuple[str, Any], ...]:
    def default_of(item: dataclasses.Field[Any]) -> Any:
        if item.default_factory is not dataclasses.MISSING:
            return item.default_factory()
        return item.default

    return tuple((item.name, default_of(item)) for item in dataclasses.fields(cast(type, kind)))


def _identity(data: Any) -> Any:
    return data


@cache
def _decoder(hint: Any) -> Decoder:
    """A function that decodes one type; cached, because captures have tens of thousands of records."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional_decoder(hint)
    if origin is tuple:
        return _tuple_decoder(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint.__getitem__
    if dataclasses.is_dataclass(hint):
        return _record_decoder(cast(type, hint))
    if hint in (int, str, bool):
        return _checked(hint)
    if hint is float:
        return _decode_number
    if origin is Mapping:
        return _mapping_decoder(typing.get_args(hint)[1])
    return _identity


def _mapping_decoder(member: Any) -> Decoder:
    inner, is_dict = _decoder(member), _checked(dict)
    if inner is _identity:
        return is_dict
    return lambda data: {key: inner(item) for key, item in is_dict(data).items()}


def _decode_number(data: Any) -> float:
    # A whole number may be written without a decimal point.
    if type(data) not in (int, float):
        raise TypeError(f"expected a number, found {data!r:.40}")
    return float(data)


def _checked(kind: type) -> Decoder:
    def decode(data: Any) -> Any:
        if type(data) is not kind:
            raise TypeError(f"expected {kind.__name__}, found {data!r:.40}")
        return data

    return decode


def _optional_decoder(hint: Any) -> Decoder:
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    if len(members) != 1:
        return _identity
    inner = _decoder(members[0])
    return lambda data: None if data is None else inner(data)


def _tuple_decoder(members: tuple[Any, ...]) -> Decoder:
    if len(members) == 2 and members[1] is Ellipsis:
        inner = _decoder(members[0])
        if inner is _identity:
            return lambda data: tuple(data)
        return lambda data: tuple([inner(item) for item in data])
    decoders = tuple(_decoder(member) for member in members)
    return lambda data: tuple(decode(item) for decode, item in zip(decoders, data, strict=True))


def _record_decoder(kind: type) -> Decoder:
    hints = typing.get_type_hints(kind)
    fields = {item.name: _decoder(hints[item.name]) for item in dataclasses.fields(kind)}

    def decode(data: Any) -> Any:
        return kind(**{name: fields[name](item) for name, item in data.items() if name in fields})

    return decode
