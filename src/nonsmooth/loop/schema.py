"""How fields of a state are saved, loaded, checked and rolled back: each says so once, where it is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any


class Kind(Enum):
    """How a field is saved."""

    NUMBER = "as a number of the type of its default"
    COUNTS = "as the numbers of a small dataclass"
    VECTOR = "as an array of one number for each variable or constraint, or of none"
    PART = "as what its `arrays()` returns; `shapes()` of its class says what they must look like, `restore()` takes them back"
    OTHER = "by code of its own"
    TRANSIENT = "not at all"


@dataclass(frozen=True)
class Role:
    """What is done with a field."""

    kind: Kind
    survives: bool = False
    """Whether it stays as it is when a run is rolled back to an earlier point."""
    length: str = ""
    """Of a vector: "variables" or "constraints"."""
    default: Any = None
    """Of a number, which tells its type."""


def number(default: float, *, survives: bool = False) -> Any:
    """A field that is a number, or a truth value."""
    return field(default=default, metadata={"role": Role(Kind.NUMBER, survives, default=default)})


def counts(kind: Callable[[], Any]) -> Any:
    """A field that is a dataclass of counters, which survive rollbacks."""
    return field(default_factory=kind, metadata={"role": Role(Kind.COUNTS, survives=True)})


def vector(empty: Callable[[], Any], *, length: str) -> Any:
    """A field that is a vector, empty at first."""
    return field(default_factory=empty, metadata={"role": Role(Kind.VECTOR, length=length)})


def part() -> Any:
    """A field that is an object with arrays of its own; a rollback begins with a new one."""
    return field(metadata={"role": Role(Kind.PART)})


def other(*, survives: bool = True, **default: Any) -> Any:
    """A field that `saving` treats by name."""
    return field(metadata={"role": Role(Kind.OTHER, survives)}, **default)


def transient(**default: Any) -> Any:
    """A field that is not saved, and that survives rollbacks."""
    return field(metadata={"role": Role(Kind.TRANSIENT, survives=True)}, **default)


def roles(kind: type) -> dict[str, Role]:
    """The role of every field.

    >>> @dataclass
    ... class Small:
    ...     speed: float = number(1.0)
    >>> roles(Small)["speed"].kind.name
    'NUMBER'
    """
    return {item.name: item.metadata["role"] for item in fields(kind)}


def roll_back(state: Any, fresh: Any) -> None:
    """Make a state as one that has just begun, but for the fields that survive."""
    for name, role in roles(type(state)).items():
        if not role.survives:
            setattr(state, name, getattr(fresh, name))
