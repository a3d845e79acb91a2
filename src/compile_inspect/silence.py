"""Hide what a program prints in a trial."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_STDOUT, _STDERR = 1, 2


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Hide everything that Python prints.

    >>> with silence():
    ...     print("this is not shown")
    """
    with Path(os.devnull).open("w") as devnull, contextlib.redirect_stdout(devnull), contextlib.redirect_stderr(devnull):
        yield


@contextlib.contextmanager
def divert_output() -> Iterator[TextIO]:
    """Hide everything that this process, its libraries and its children print; yields a stream to the terminal.

    Handlers of loggers keep the stream they were made with, and compiled code and child processes only know descriptors, so
    the descriptors themselves are redirected. What is written to the stream that this yields is shown. A crash of the
    interpreter still reports where it happened.
    """
    with contextlib.ExitStack() as stack:
        terminal = _copy_of_standard_error(stack)
        _flush()
        stack.enter_context(silence())
        stack.callback(_flush)  # before the descriptors are restored: buffered output must be hidden too
        devnull = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, devnull)
        for descriptor in (_STDOUT, _STDERR):
            _redirect(descriptor, devnull, stack)
        yield terminal


def _copy_of_standard_error(stack: contextlib.ExitStack) -> TextIO:
    """A copy of standard error that stays valid when its descriptor is redirected."""
    errors = sys.stderr
    try:
        descriptor = os.dup(errors.fileno())
    except (AttributeError, OSError, ValueError):  # there is none, or it is in memory
        return errors if errors is not None else stack.enter_context(Path(os.devnull).open("w"))
    copy = stack.enter_context(os.fdopen(descriptor, "w", encoding=errors.encoding, errors="backslashreplace"))
    if not faulthandler.is_enabled():
        faulthandler.enable(copy)
        stack.callback(faulthandler.disable)
    return copy


def _redirect(descriptor: int, target: int, stack: contextlib.ExitStack) -> None:
    try:
        before = os.dup(descriptor)
    except OSError:  # closed by the parent process
        return
    os.dup2(target, descriptor)
    stack.callback(os.close, before)
    stack.callback(os.dup2, before, descriptor)


def _flush() -> None:
    """Write everything in Python's and C's buffers to where their streams lead now."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
