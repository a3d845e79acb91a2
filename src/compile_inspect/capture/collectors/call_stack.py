"""How the frame that Dynamo is about to compile was called, from the program's first line on.

Torch's own event has a stack too, but torch cuts a fixed number of frames off its end, and between Python and Dynamo there
are sometimes fewer than that: then the lines of the compiled function itself are missing, and whatever called it seems to
have called torch.
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
# What may stand between two frames of Dynamo's conversion.
_INTERNAL = ("/torch/_dynamo/", "/torch/_logging/", "/torch/_utils_internal.py", "/torch/_strobelight/", "/contextlib.py")


@dataclass(frozen=True)
class CallStack:
    """The lines that led to a frame, its own last; `inside` says how many of the last ones are inside compiled code."""

    rows: Rows
    inside: int


def call_stack(frame: tuple[str, int, str, str]) -> CallStack | None:
    """The stack of the frame under compilation in this thread, whose own line is `frame`; None outside of Dynamo."""
    current = _caller(sys._getframe(1))
    if current is None:
        return None
    rows = [frame]
    while current is not None:
        code = current.f_code
        line = linecache.getline(code.co_filename, current.f_lineno, current.f_globals).strip()
        rows.append((code.co_filename, current.f_lineno, code.co_name, line))
        current = current.f_back
    return described(tuple(reversed(rows)))


def described(rows: Rows) -> CallStack:
    """A stack as the user would know it: the rest of a function after a graph break stands for the function.

    >>> script, entry = ("a.py", 9, "<module>", ""), ("/x/torch/_dynamo/eval_frame.py", 1, "compile_wrapper", "")
    >>> before, rest = ("a.py", 3, "step", ""), ("a.py", 3, "torch_dynamo_resume_in_step_at_3", "")
    >>> described((script, entry, before, rest)) == CallStack((script, entry, rest), 1)
    True
    """
    kept: list[tuple[str, int, str, str]] = []
    inside = 1
    for index, row in enumerate(rows):
        follows = index + 1 < len(rows) and rows[index + 1][2].startswith(_RESUME)
        if row[0].replace("\\", "/").endswith(_ENTRY) and row[2] == _ENTRY_FUNCTION:
            inside = -len(kept) - (not follows)
        if not follows:
            kept.append(row)
    # Compiled without a wrapper (in a context, say): then only the frame itself is known to be inside.
    return CallStack(tuple(kept), inside if inside > 0 else len(kept) + inside)


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame that called what is being compiled: the one before Dynamo's conversion, the innermost if it is nested."""
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
