"""What a program prints in a trial is not what its user wants to read."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_OUTPUT, _ERRORS = 1, 2


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """For a while, nothing that Python prints is seen.

    >>> with silence():
    ...     print("nobody reads this")
    """
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


@contextlib.contextmanager
def divert_output() -> Iterator[TextIO]:
    """For a while, nothing is seen that this process, its libraries and its children print; gives a way to the terminal.

    Handlers of loggers keep the stream they were made with, and compiled code and child processes know descriptors only:
    so the descriptors themselves lead nowhere meanwhile. What is written to the stream that this gives is seen. A crash
    of the interpreter still says where it happened.
    """
    with contextlib.ExitStack() as stack:
        seen = _standing_errors(stack)
        _flush()
        stack.enter_context(silence())
        stack.callback(_flush)  # before the descriptors are put back: what was buffered belongs nowhere, too
        nowhere = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, nowhere)
        for descriptor in (_OUTPUT, _ERRORS):
            _lead(descriptor, nowhere, stack)
        yield seen


def _standing_errors(stack: contextlib.ExitStack) -> TextIO:
    """Standard error as it is now, which stays what it is when its descriptor leads elsewhere."""
    errors = sys.stderr
    try:
        descriptor = os.dup(errors.fileno())
    except (AttributeError, OSError, ValueError):  # none, or one in memory
        return errors if errors is not None else stack.enter_context(Path(os.devnull).open("w"))
    copy = stack.enter_context(os.fdopen(descriptor, "w", encoding=errors.encoding, errors="backslashreplace"))
    if not faulthandler.is_enabled():
        faulthandler.enable(copy)
        stack.callback(faulthandler.disable)
    return copy


def _lead(descriptor: int, elsewhere: int, stack: contextlib.ExitStack) -> None:
    try:
        before = os.dup(descriptor)
    except OSError:  # closed by whoever started us
        return
    os.dup2(elsewhere, descriptor)
    stack.callback(os.close, before)
    stack.callback(os.dup2, before, descriptor)


def _flush() -> None:
    """Everything that waits in buffers of Python's or of C's is written now, to where these lead at this moment."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
