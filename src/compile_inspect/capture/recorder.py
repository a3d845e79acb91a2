"""`record`: record all compilations inside a `with` block."""

from __future__ import annotations

import linecache
import os
import sys
import time
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from compile_inspect import __version__
from compile_inspect.assemble import assemble
from compile_inspect.capture.collectors import COLLECTORS
from compile_inspect.capture.collectors.exceptions import exception_facts, program_rows
from compile_inspect.capture.tap import Tap
from compile_inspect.capture_file import refuse_to_overwrite, save
from compile_inspect.errors import CaptureError
from compile_inspect.journal import CLOSED, Event, FileJournal, MemoryJournal
from compile_inspect.records import SCHEMA_VERSION, Inspection
from compile_inspect.records.locations import is_library_file

tap = Tap(COLLECTORS)

# The user's own files are stored completely, so that a report can show them on another machine. Generated files can be huge.
_MAX_SOURCE_CHARACTERS = 500_000
_MAX_SOURCES = 200
_MAX_LIBRARY_SOURCES = 20


class Recording:
    """A recording, running or finished; created by `record`."""

    def __init__(self, path: Path | None = None, *, force: bool = False, session: str = "", rank: int | None = None) -> None:
        self.path = path
        self._force = force
        self._header: Event = {
            "schema": SCHEMA_VERSION,
            "recorder": __version__,
            "pid": os.getpid(),
            "rank": rank,
            "session": session or uuid.uuid4().hex,
            "command": list(getattr(sys, "orig_argv", sys.argv)),
            "started": time.time(),
        }
        self._journal = MemoryJournal() if path is None else FileJournal(path, self._header)
        self._inspection: Inspection | None = None
        self._running = False

    def __repr__(self) -> str:
        where = "memory" if self.path is None else str(self.path)
        stage = "running" if self._running else "not started" if self._inspection is None else "finished"
        return f"Recording({where}, {stage})"

    def start(self) -> None:
        """Start recording; with a path, the file exists from now on."""
        if self._running or self._inspection is not None:
            raise CaptureError("a recording can be started only once; create a new one with compile_inspect.record()")
        if self.path is not None:
            refuse_to_overwrite(self.path, force=self._force)
            assert isinstance(self._journal, FileJournal)
            try:
                self._journal.create()
            except OSError as error:
                raise CaptureError(f"{self.path} cannot be written: {error.strerror or error}") from error
        self.start_lazily()

    def start_lazily(self) -> None:
        """Start recording without writing to disk: the first event creates the file."""
        import torch  # noqa: F401 (torch must be imported before it can be hooked)

        self._running = True
        tap.add(self._journal)

    def stop(self) -> None:
        """Stop recording, and write the capture if it has a path."""
        if not self._running or os.getpid() != self._header["pid"]:
            return  # a forked child that exits the block must not finish its parent's capture
        self._running = False
        if isinstance(self._journal, FileJournal) and not self._journal.created:
            tap.forget(self._journal)  # nothing was compiled in this process, so it writes no file
            return
        tap.remove(self._journal)
        self._journal.append({"kind": "end", "compilation": None, "time": time.time(), "thread": 0})
        try:
            self._inspection = self._assemble(complete=True)
        except Exception as error:
            where = f"; the recorded events are in {self.path}" if self.path is not None else ""
            raise CaptureError(f"the capture could not be finished ({type(error).__name__}: {error}){where}") from error
        finally:
            if isinstance(self._journal, FileJournal):
                self._journal.close()
        if isinstance(self._journal, FileJournal):
            save(self._inspection, self._journal.path, force=True)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the evidence to a capture file, even if the recording has no path."""
        save(self.inspection, path, force=force)

    def note(self, text: str) -> None:
        """Add a note, which is shown to readers of the capture."""
        self._journal.append({"kind": "note", "compilation": None, "time": time.time(), "thread": 0, "text": text})

    def add_failure(self, error: BaseException) -> None:
        """Record an exception that the program did not handle."""
        if isinstance(self._journal, FileJournal) and not self._journal.created:
            return  # nothing was compiled in this process, so it writes no file
        facts = {**exception_facts(error), "rows": program_rows(error)}
        self._journal.append({"kind": "failure", "compilation": None, "time": time.time(), "thread": 0, **facts})

    @property
    def inspection(self) -> Inspection:
        """The evidence; while the recording is running, the evidence so far."""
        if self._inspection is not None:
            return self._inspection
        return self._assemble(complete=False)

    def after_fork(self, path: Path, rank: int | None) -> None:
        """Continue in a forked child with a separate file, which is created when the child compiles something."""
        parent_journal = self._journal
        tap.forget(parent_journal)
        if isinstance(parent_journal, FileJournal):
            parent_journal.abandon()
        self.path = path
        self._header = {**self._header, "pid": os.getpid(), "rank": rank, "started": time.time()}
        self._journal = FileJournal(path, self._header)
        self._inspection = None
        tap.add(self._journal)
        self._running = True

    def _assemble(self, *, complete: bool) -> Inspection:
        inspection = assemble(self._journal.events(), self._header, complete=complete)
        failure = getattr(self._journal, "failure", None)
        if failure is not None and failure != CLOSED:
            inspection = replace(inspection, notes=(*inspection.notes, failure))
        return replace(inspection, sources=_own_sources(inspection), library_sources=_library_sources(inspection))

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Exception) and self._running:
            self.add_failure(error)
        try:
            self.stop()
        except CaptureError:
            if error is None:  # the program's own exception takes precedence
                raise


def record(path: str | Path | None = None, *, force: bool = False) -> Recording:
    """Record every compilation inside a `with` block, without changing any of them.

    With `path`, the capture is written there. While the block is running, the file contains the events so far, so a killed
    program leaves a partial capture. An existing file is only replaced if `force` is set.

        with compile_inspect.record("step.inspection") as recording:
            train_step(batch)
        print(len(recording.inspection.breaks), "causes of graph breaks")
    """
    return Recording(None if path is None else Path(path), force=force)


def _own_sources(inspection: Inspection) -> dict[str, str]:
    """The contents of the user's files that the evidence refers to."""
    files = {item.file for item in inspection.compilations}
    files |= {location.file for stack in inspection.stacks for location in stack.locations}
    sources: dict[str, str] = {}
    for file in sorted(files):
        if len(sources) >= _MAX_SOURCES:
            break
        text = _source_text(file)
        if text is not None:
            sources[file] = text
    return sources


def _library_sources(inspection: Inspection) -> dict[str, str]:
    """The contents of library files that operations come from, for models that are defined in libraries."""
    lines = [line for stack in inspection.stacks if (line := stack.user_line) is not None and line.in_library]
    files = [file for file, _ in Counter(line.file for line in lines if not line.in_torch).most_common(_MAX_LIBRARY_SOURCES)]
    return {file: text for file in files if (text := _text(file)) is not None}


def _source_text(file: str) -> str | None:
    return None if is_library_file(file) else _text(file)


def _text(file: str) -> str | None:
    # Notebook cells are not on disk, but linecache has them.
    if not file.endswith((".py", ".ipynb")) and file not in linecache.cache:
        return None
    text = "".join(linecache.getlines(file))
    return text if 0 < len(text) <= _MAX_SOURCE_CHARACTERS else None
