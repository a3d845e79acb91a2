"""Cases by name."""

from __future__ import annotations

from .case import Case


def catalog(*cases: Case) -> dict[str, Case]:
    """The cases by name; a name that occurs twice is an error."""
    named = {case.name: case for case in cases}
    if len(named) != len(cases):
        names = [case.name for case in cases]
        raise ValueError(f"names used twice: {sorted({name for name in names if names.count(name) > 1})}")
    return named
