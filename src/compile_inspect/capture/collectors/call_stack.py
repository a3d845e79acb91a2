"""The call stack of the frame that Dynamo is about to compile, starting at the program's first line.

Torch's own event also has a stack, but torch removes a fixed number of frames from its end, and sometimes there are fewer
frames than that between Python and Dynamo. The lines of the compiled function are then missing,
and its caller seems to call torch.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from types import FrameType

from compile_inspect.capture.collectors.base import Rows
from compile_inspect.records.locations import is_recorder_file

_CONVERSION = "/torch/_dynamo/convert_frame.py"
_ENTRY = "/torch/_dynamo/eval_frame.py"
_ENTRY_FUNCTION = "compile_wrapper"
_RESUME = "torch_dynamo_resume_in_"
# Files that may be between two frames of Dynamo's conversion.
_INTERNAL = ("/torch/_dynamo/", "/torch/_logging/", "/torch/_utils_internal.py", "/torch/_strobelight/", "/contextlib.py")


@dataclass(frozen=True)
class CallStack:
    """The call stack of a frame, its own line last; the last `inside` rows are inside compiled code."""

    rows: Rows
    inside: int


def call_stack(frame: tuple[str, int, str, str]) -> CallStack | None:
    """The call stack of the frame that this thread is compiling; `frame` is its own line. None outside Dynamo."""
    current = _caller(sys._getframe(1))
    if current is None:
        return None
    rows = [frame]
    while current is not None:
        code = current.f_code
        line = linecache.getline(code.co_filename, current.f_lineno, current.f_globals).strip()
        rows.append((code.co_filename, current.f_lineno, code.co_name, line))
        current = current.f_back
    return simplified(tuple(reversed(rows)))


def simplified(rows: Rows) -> CallStack:
    """A stack as the user knows it: the remainder of a function after a graph break replaces the function's own frame.

    >>> script, entry = ("a.py", 9, "<module>", ""), ("/x/torch/_dynamo/eval_frame.py", 1, "compile_wrapper", "")
    >>> before, rest = ("a.py", 3, "step", ""), ("a.py", 3, "torch_dynamo_resume_in_step_at_3", "")
    >>> simplified((script, entry, before, rest)) == CallStack((script, entry, rest), 1)
    True
    """
    simplified_rows: list[tuple[str, int, str, str]] = []
    inside = 1
    for index, row in enumerate(rows):
        is_replaced = index + 1 < len(rows) and rows[index + 1][2].startswith(_RESUME)
        if row[0].replace("\\", "/").endswith(_ENTRY) and row[2] == _ENTRY_FUNCTION:
            inside = -len(simplified_rows) - (not is_replaced)
        if not is_replaced:
            simplified_rows.append(row)
    # Without a wrapper (for example, in a context manager), only the frame itself is known to be inside.
    return CallStack(tuple(simplified_rows), inside if inside > 0 else len(simplified_rows) + inside)


def _caller(frame: FrameType | None) -> FrameType | None:
    """The caller of the frame that is being compiled: the frame before the innermost of Dynamo's conversions."""
    last = None
    while frame is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        if file.endswith(_CONVERSION):
            last = frame
        elif last is not None and not _is_internal(file):
            break
        frame = frame.f_back
    return None if last is None else last.f_back


def _is_internal(file: str) -> bool:
    return (any(part in file for part in _INTERNAL) and not file.endswith(_ENTRY)) or is_recorder_file(file)
