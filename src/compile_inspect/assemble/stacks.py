"""Stacks from a journal, parsed once and renumbered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compile_inspect.records import Location, Stack
from compile_inspect.records.locations import is_command_file, is_recorder_file

_FRAME = re.compile(r'^\s*File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)$')
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")


class StackTable:
    """The stacks of one capture, each distinct one stored once."""

    def __init__(self) -> None:
        self._stacks: list[Stack] = []
        self._numbers: dict[Stack, int] = {}
        self._numbers_by_journal_index: dict[int, int] = {}
        self._by_line: dict[int, set[Location]] = {}
        self._indexed = 0

    def define(self, index: int, stack: Any) -> None:
        """Add a stack with its index in the journal."""
        locations = parse_stack(stack) if isinstance(stack, str) else _from_rows(stack)
        self._numbers_by_journal_index[index] = self.add(locations)

    def define_call(self, index: int) -> int | None:
        """The number of a call stack without the recorder's own frames, and without those of the command line before them."""
        number = self.number(index)
        stack = self.stack(number)
        if stack is None or not any(is_recorder_file(location.file) for location in stack.locations):
            return number
        recorder_indices = [i for i, location in enumerate(stack.locations) if is_recorder_file(location.file)]
        from_command = any(is_command_file(stack.locations[i].file) for i in recorder_indices)
        before = () if from_command else stack.locations[: recorder_indices[0]]
        return self.add((*before, *stack.locations[recorder_indices[-1] + 1 :]))

    def add(self, locations: tuple[Location, ...]) -> int:
        """The number of a stack, new or known."""
        stack = Stack(locations)
        number = self._numbers.get(stack)
        if number is None:
            number = self._numbers[stack] = len(self._stacks)
            self._stacks.append(stack)
        return number

    def add_rows(self, rows: Iterable[Any]) -> int | None:
        """The number of a stack of (file, line, function, code) rows; None if there are no rows."""
        locations = _from_rows(rows)
        return self.add(locations) if locations else None

    def number(self, index: int | None) -> int | None:
        """The number of the stack with a journal's index; None if the journal was truncated before its definition."""
        return None if index is None else self._numbers_by_journal_index.get(index)

    def stack(self, number: int | None) -> Stack | None:
        """The stack with this number."""
        return None if number is None else self._stacks[number]

    def user_line(self, number: int | None) -> Location | None:
        """The innermost line outside torch of a stack."""
        return None if number is None else self._stacks[number].user_line

    def with_call(self, number: int | None, call_stack: int | None) -> int | None:
        """The stack, preceded by the call stack of its frame if all of its lines are in torch."""
        stack, call = self.stack(number), self.stack(call_stack)
        if stack is None or call is None or number == call_stack or not all(item.in_torch for item in stack.locations):
            return number
        return self.add((*call.locations[:-1], *stack.locations))

    def find(self, tail: str, line: int) -> Location | None:
        """A line of some stack, by the end of its file name."""
        if not tail:
            return None
        if self._indexed < len(self._stacks):
            for stack in self._stacks[self._indexed :]:
                for location in stack.locations:
                    self._by_line.setdefault(location.line, set()).add(location)
            self._indexed = len(self._stacks)
        matches = [item for item in self._by_line.get(line, ()) if item.file.endswith(("/" + tail, "\\" + tail))]
        return min(matches, key=str) if matches else None

    def all(self) -> tuple[Stack, ...]:
        """Every stack, in the order of their numbers."""
        return tuple(self._stacks)


def parse_stack(text: str) -> tuple[Location, ...]:
    r"""Parse a stack in Python's traceback format.

    >>> parse_stack('  File "model.py", line 3, in forward\n    return x + 1\n')
    (Location(file='model.py', line=3, function='forward', code='return x + 1'),)
    """
    locations: list[Location] = []
    head: re.Match[str] | None = None
    code = ""
    for line in [*text.splitlines(), 'File "", line 0, in ']:
        match = _FRAME.match(line)
        if match is None:
            if head is not None and not code and line.strip().strip("^~ "):
                code = line.strip()
            continue
        if head is not None:
            locations.append(Location(head["file"], int(head["line"]), original_function_name(head["function"]), code))
        head, code = match, ""
    return tuple(locations)


def original_function_name(name: str) -> str:
    """The user's name of a function; Dynamo renames its remainder after a graph break.

    >>> original_function_name("torch_dynamo_resume_in_forward_at_12")
    'forward'
    """
    match = _RESUME.match(name)
    return match["name"] if match else name


def _from_rows(rows: Iterable[Any]) -> tuple[Location, ...]:
    return tuple(Location(str(row[0]), int(row[1]), original_function_name(str(row[2])), str(row[3])) for row in rows)
