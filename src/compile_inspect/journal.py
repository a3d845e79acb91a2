"""The journal of a recording: one JSON object per line, written as events occur.

A killed program leaves its journal, so each line is passed to the operating system immediately, and readers accept an
incomplete last line. This module needs only the standard library, so you can read a journal without torch.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

FORMAT = "compile-inspect journal"

Event = dict[str, Any]
CLOSED = "the journal is closed"
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


class Journal(Protocol):
    """The destination of a recording's events."""

    def append(self, event: Event) -> None:
        """Add one event."""

    def events(self) -> Iterator[Event]:
        """All events so far, in order."""


class MemoryJournal:
    """Events in memory, stored as JSON so that they are the same as events read from a file."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, event: Event) -> None:
        """Add one event."""
        self._lines.append(encode(event))

    def events(self) -> Iterator[Event]:
        """All events so far, in order."""
        return (json.loads(line) for line in list(self._lines))


class FileJournal:
    """Events in a file, each readable as soon as `append` returns.

    The first event creates the file, so a process that never compiles creates none. If the disk is full, the program continues:
    `failure` is then the error message, and further events are dropped.
    """

    def __init__(self, path: Path, header: Event) -> None:
        self.path = path.absolute()  # the program may change the working directory
        self.failure: str | None = None
        self._header = {"format": FORMAT, **header}
        self._descriptor: int | None = None
        self._created = False
        self._owner = os.getpid()
        self._identity = (0, 0)
        self._lock = threading.Lock()

    @property
    def created(self) -> bool:
        """Whether anything was written."""
        return self._created

    def create(self) -> None:
        """Create the file now instead of at the first event; raises OSError if this fails."""
        with self._lock:
            if self._descriptor is None:
                self._descriptor = self._create()

    def append(self, event: Event) -> None:
        """Add one event."""
        line = encode(event)
        if os.getpid() != self._owner:
            return  # a forked child inherits the descriptor, but the file belongs to its parent
        with self._lock:
            if self.failure is not None:
                return
            try:
                if self._descriptor is None:
                    self._descriptor = self._create()
                elif not self._is_ours(self._descriptor):
                    self._descriptor = self._reopen()
                _write(self._descriptor, line)
            except OSError as error:
                self.failure = f"{self.path} could not be written: {error.strerror or error}"

    def events(self) -> Iterator[Event]:
        """All events so far, in order."""
        if not self.created:
            return iter(())
        return read_events(self.path)

    def close(self) -> None:
        """Close the file; later events are dropped."""
        with self._lock:
            self._close_descriptor()
            self.failure = self.failure or CLOSED

    def abandon(self) -> None:
        """Stop using the file without writing to it: for a forked child, because the file belongs to its parent."""
        self._lock = threading.Lock()
        self._close_descriptor()
        self.failure = "the journal belongs to the parent process"

    def _close_descriptor(self) -> None:
        if self._descriptor is not None and self._is_ours(self._descriptor):
            os.close(self._descriptor)
        self._descriptor = None

    def _create(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _CLOSE_ON_EXEC | getattr(os, "O_BINARY", 0)
        descriptor = _with_high_number(os.open(self.path, flags, 0o666))
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        _write(descriptor, encode(self._header))
        self._created = True
        return descriptor

    def _is_ours(self, descriptor: int) -> bool:
        """Whether the descriptor still refers to the file: programs may close and reuse descriptors they did not open."""
        try:
            status = os.fstat(descriptor)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _reopen(self) -> int:
        descriptor = _with_high_number(os.open(self.path, os.O_WRONLY | os.O_APPEND | _CLOSE_ON_EXEC))
        if not self._is_ours(descriptor):
            os.close(descriptor)
            raise OSError(0, "the file was replaced")
        return descriptor


def _with_high_number(descriptor: int) -> int:
    """Duplicate a descriptor to a high number, because programs expect low numbers for their own files."""
    try:
        import fcntl
        import resource
    except ImportError:  # Windows
        return descriptor
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    min_number = 500 if limit == resource.RLIM_INFINITY or limit > 520 else max(3, limit - 16)
    try:
        duplicate = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min_number)
    except OSError:
        return descriptor
    os.close(descriptor)
    return duplicate


def encode(event: Event) -> bytes:
    """One event as a line of JSON; invalid Unicode is escaped instead of raising an error."""
    return json.dumps(event, separators=(",", ":"), default=str).encode("utf-8", "backslashreplace") + b"\n"


def _write(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]


def read_header(path: Path) -> Event | None:
    """The first line of a journal, or None if the file is something else."""
    with path.open("rb") as file:
        # A header is short; this avoids reading all of another file that has no line breaks.
        header = _parse(file.readline(1_000_000))
    return header if header is not None and header.get("format") == FORMAT else None


def read_events(path: Path) -> Iterator[Event]:
    """The readable events of a journal."""
    with path.open("rb") as file:
        next(file, None)
        for line in file:
            event = _parse(line)
            if event is not None:
                yield event


def _parse(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # an incomplete line, or not a journal
        return None
    return event if isinstance(event, dict) else None
