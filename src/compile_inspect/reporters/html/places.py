"""Files, lines and stacks of a capture for the page, which refers to each file by a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compile_inspect.records import Inspection, Location
from compile_inspect.records.locations import is_library_file, is_torch_file
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.wording.locations import short_path

Data = dict[str, Any]


class Places:
    """The files in records, numbered in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def path(self, file: str) -> int:
        """The number of a file.

        >>> places = Places()
        >>> places.path("a.py"), places.path("b.py"), places.path("a.py")
        (0, 1, 0)
        """
        return self._numbers.setdefault(file, len(self._numbers))

    def place(self, file: str, line: int, name: str = "") -> Data:
        """A line of a file."""
        return {"path": self.path(file), "line": line, "name": words(name)}

    def of(self, location: Location | None) -> Data | None:
        """The place of a location; None if there is none."""
        return None if location is None else self.place(location.file, location.line, location.function)

    def paths(self) -> list[Data]:
        """All files so far."""
        return [
            {"path": paragraph(file), "short": short_path(file), "library": is_library_file(file), "torch": is_torch_file(file)}
            for file in self._numbers
        ]


def stacks_of(inspection: Inspection, places: Places) -> list[Data]:
    """Every stack, with the line to show it at and the user's own line."""
    stacks = []
    for stack in inspection.stacks:
        line, own = stack.user_line, stack.own_line
        stacks.append(
            {
                "frames": [[places.path(item.file), item.line, words(item.function)] for item in stack.locations],
                "line": None if line is None else [places.path(line.file), line.line],
                "own": None if own is None else [places.path(own.file), own.line],
            }
        )
    return stacks


def shown_lines(inspection: Inspection) -> dict[str, set[int]]:
    """For each file, the lines that the capture refers to."""
    lines: dict[str, set[int]] = {}

    def note(locations: Iterable[Location | None]) -> None:
        for location in locations:
            if location is not None:
                lines.setdefault(location.file, set()).add(location.line)

    for stack in inspection.stacks:
        note(item for item in stack.locations if not item.in_torch)
    note(place for item in inspection.breaks for place in (item.location, item.own_location))
    note(item.location for item in inspection.guards if not item.noise)
    note(item.location for item in inspection.specializations)
    for compilation in inspection.compilations:
        lines.setdefault(compilation.file, set()).add(compilation.line)
    return lines
