"""Names of compilations, and records grouped by compilation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from compile_inspect.records import Compilation, Inspection
from compile_inspect.records.locations import is_torch_file
from compile_inspect.wording.locations import place, user_line, where
from compile_inspect.wording.plain import one_line

Item = TypeVar("Item")
_RESUME = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")


def function_name(name: str) -> str:
    """The name of a function as its author wrote it.

    >>> function_name("torch_dynamo_resume_in_forward_at_17")
    'forward (the rest, from line 17)'
    """
    match = _RESUME.fullmatch(name)
    return f"{one_line(match[1])} (the rest, from line {match[2]})" if match else one_line(name) or "<unnamed>"


def by_identifier(inspection: Inspection) -> dict[str, Compilation]:
    """Compilations by their id."""
    return {item.id: item for item in inspection.compilations}


def title(identifier: str | None, compilations: dict[str, Compilation], inspection: Inspection) -> tuple[str, ...]:
    """The title of a compilation: its id, and its function and location if they are known."""
    if identifier is None:
        return ("Outside any compilation",)
    compilation = compilations.get(identifier)
    if compilation is None:
        return (f"Compilation {one_line(identifier)}",)
    heading = f"Compilation {one_line(identifier)}  {function_name(compilation.function)}"
    lines: tuple[str, ...] = (heading, place(compilation.file, compilation.line))
    if is_torch_file(compilation.file):
        # A compiled module is entered through a wrapper of torch, whose location does not help the reader.
        caller = user_line(inspection, compilation.call_stack)
        if caller is not None and not caller.in_torch:
            lines += (f"called at {where(caller)}",)
    return lines


def grouped(items: Iterable[Item], key: Callable[[Item], str | None]) -> dict[str | None, list[Item]]:
    """Items by compile id, in the order in which the ids first appear."""
    groups: dict[str | None, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
