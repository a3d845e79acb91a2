"""The user's line that an operation of a graph came from."""

from __future__ import annotations

import re
import subprocess
import traceback
from pathlib import Path
from typing import Any

from compile_inspect.agreement.float64_run import intercept_operations
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.records.locations import Location, Stack
from compile_inspect.variants import Task
from compile_inspect.variants.base import one_line

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n\s*(?P<code>.*)')
_PACKAGE = str(Path(__file__).resolve().parents[1])


def line_of_stack(text: str | None) -> Location | None:
    """The innermost line outside torch in a stack as torch prints it.

    >>> str(line_of_stack('  File "/home/me/model.py", line 3, in forward\\n    return x.relu()\\n'))
    '/home/me/model.py:3'
    """
    frames = [
        Location(match["file"], int(match["line"]), match["function"].strip(), match["code"].strip())
        for match in _FRAME.finditer(text or "")
    ]
    return Stack(tuple(frames)).user_line


def line_of_operation(task: Task, graph: Any, node: Any) -> Location | None:
    """The user's line behind a node of a traced graph: a run of the function has the same operations in the same order."""
    nodes = [item for item in graph.graph.nodes if item.op == "call_function" and item.target is node.target]
    position = nodes.index(node)
    lines: list[Location | None] = []

    def note(operation: Any, args: Any, kwargs: Any) -> Any:
        if operation is node.target:
            lines.append(running_user_line())
        return operation(*args, **kwargs)

    args, kwargs = clone_inputs((task.args, task.kwargs))
    with intercept_operations(note):
        task.run(task.function, args, kwargs)
    return lines[position] if position < len(lines) else None


def running_user_line() -> Location | None:
    """The user's innermost line that is running now; None within a backward."""
    for frame in reversed(traceback.extract_stack()):
        location = Location(frame.filename, frame.lineno or 0, frame.name, frame.line or "")
        if location.in_torch or frame.filename.startswith(_PACKAGE):
            if frame.filename.startswith(_PACKAGE) and frame.name == "gradients":
                return None  # a backward runs where gradients are requested, not at the user's operation
            continue
        return location
    return None


def line_of_exception(error: BaseException) -> Location | None:
    """The user's line that a compiler was processing when it raised: torch puts the stack into one of the messages."""
    for cause in causes(error):
        location = line_of_stack(str(cause))
        if location is not None:
            return location
    return None


def causes(error: BaseException) -> list[BaseException]:
    """The chain of exceptions that led to one, the innermost last."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = getattr(following, "inner_exception", None) or following.__cause__
    return chain


def innermost_cause(error: BaseException) -> str:
    """The innermost cause of an exception in one line: the compiler's own message rather than that of its caller.

    >>> innermost_cause(RuntimeError("C++ compile error\\n/tmp/kernel.cpp:3:7: error: no such overload"))
    'RuntimeError: no such overload'
    """
    chain = [item for item in causes(error) if not isinstance(item, subprocess.SubprocessError)]
    cause = chain[-1] if chain else error
    messages = [line.partition(" error: ")[2] for line in str(cause).splitlines() if " error: " in line]
    return f"{type(cause).__name__}: {messages[0]}" if messages else one_line(cause)
