"""How the fields of a state are saved, loaded, checked and rolled back. Each field declares this once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any


class Kind(Enum):
    """How a field is saved."""

    NUMBER = "as a number with the type of its default"
    COUNTS = "as the numbers of a small dataclass"
    VECTOR = "as an array with one number for each variable or constraint, or as an empty array"
    PART = "as the arrays that `arrays()` returns; `shapes()` of its class defines their shapes, `restore()` loads them"
    OTHER = "by its own code"
    TRANSIENT = "not at all"


@dataclass(frozen=True)
class Role:
    """How to save a field and whether it survives a rollback."""

    kind: Kind
    survives: bool = False
    """Whether the field is unchanged when a run is rolled back to an earlier point."""
    length: str = ""
    """For a vector: "variables" or "constraints"."""
    default: Any = None
    """For a number: its default, which defines its type."""


def number(default: float, *, survives: bool = False) -> Any:
    """A field that is a number or a bool."""
    return field(default=default, metadata={"role": Role(Kind.NUMBER, survives, default=default)})


def counts(kind: Callable[[], Any]) -> Any:
    """A field that is a dataclass of counters, which survive rollbacks."""
    return field(default_factory=kind, metadata={"role": Role(Kind.COUNTS, survives=True)})


def vector(empty: Callable[[], Any], *, length: str) -> Any:
    """A field that is an initially empty vector."""
    return field(default_factory=empty, metadata={"role": Role(Kind.VECTOR, length=length)})


def part() -> Any:
    """A field that is an object with its own arrays; a rollback replaces it by a new one."""
    return field(metadata={"role": Role(Kind.PART)})


def other(*, survives: bool = True, **default: Any) -> Any:
    """A field that `saved_state` handles by name."""
    return field(metadata={"role": Role(Kind.OTHER, survives)}, **default)


def transient(**default: Any) -> Any:
    """A field that is not saved and survives rollbacks."""
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
    """Reset a state to a fresh one, except for the fields that survive."""
    for name, role in roles(type(state)).items():
        if not role.survives:
            setattr(state, name, getattr(fresh, name))
