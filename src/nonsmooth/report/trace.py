"""The timeline of a run as a trace file for https://ui.perfetto.dev and chrome://tracing."""

from __future__ import annotations

import json
import logging
import math
import os
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from nonsmooth.errors import OptionError

logger = logging.getLogger("nonsmooth")

MAX_EVENTS = 1_000_000
"""Maximum number of events stored for one run, about 25 bytes each; later events are only counted."""
_BLOCK = 1000


class Trace:
    """Collects events, and writes them when it is closed. It opens the file at once, so that an invalid path fails early.

    An event has a name, and a start and a length in seconds of some clock; iterations also have figures.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_events: int = MAX_EVENTS) -> None:
        if not isinstance(path, str | os.PathLike):
            raise OptionError(f"profile must be the path of a file to write, not {path!r}")
        try:
            self._file: IO[str] = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 (`close` closes it)
        except (OSError, ValueError) as error:
            raise OptionError(f"profile={os.fspath(path)!r} cannot be written: {error}") from error
        self._path, self._max_events = path, max_events
        self._events = array("d")
        self._names: dict[str, int] = {}
        self._iterations: dict[int, dict[str, Any]] = {}
        self._left_out = 0
        self._full = self._started = self._last = 0.0

    def begin(self, now: float) -> None:
        """Start the run."""
        self._started = self._last = now

    def add(self, name: str, start: float, seconds: float) -> None:
        """Add one event; two events must be nested or disjoint."""
        if len(self._events) < 3 * self._max_events:
            self._events.extend((self._names.setdefault(name, len(self._names)), start, seconds))
        else:
            self._full = self._full if self._left_out else start
            self._left_out += 1

    def iteration(self, number: int, figures: Mapping[str, float], now: float) -> None:
        """Add an iteration that ends now and began where the previous one ended."""
        if not self._left_out:
            finite = {name: value if math.isfinite(value) else str(value) for name, value in figures.items()}
            self._iterations[len(self._events) // 3] = {"name": f"iteration {number}", "cat": "iteration", "args": finite}
        self.add("iteration", self._last, now - self._last)
        self._last = now

    def close(self, now: float) -> None:
        """End the run and write the file. A failure only logs a warning, since it must not cost the user the result."""
        try:
            with self._file as file:
                file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
                lines: list[str] = []
                for event in self._entries(now):
                    lines.append(json.dumps(event))
                    if len(lines) == _BLOCK:
                        file.write(",\n".join(lines) + ",\n")
                        lines.clear()
                lines.append(json.dumps(_metadata("thread_name", "solver")))
                file.write(",\n".join(lines) + "\n]}\n")
        except OSError as error:
            logger.warning("the profile %s could not be written: %s", self._path, error)

    def _entries(self, end: float) -> Iterator[dict[str, Any]]:
        """All events as entries of the trace format, each outer event before its nested events."""
        yield _metadata("process_name", "nonsmooth")
        yield {"name": "minimize", "cat": "run", **self._interval(self._started, end - self._started)}
        if self._left_out:
            message = f"{self._left_out} events left out: only {self._max_events} are stored"
            yield {**self._interval(self._full, 0.0), "name": message, "ph": "i", "s": "g"}
        kinds, starts, lengths = self._events[0::3], self._events[1::3], self._events[2::3]
        names = [{"name": name, "cat": "phase"} for name in self._names]
        for index in sorted(range(len(kinds)), key=lambda index: (starts[index], -lengths[index])):
            description = self._iterations.get(index) or names[int(kinds[index])]
            yield {**description, **self._interval(starts[index], lengths[index])}

    def _interval(self, start: float, seconds: float) -> dict[str, Any]:
        """Start and length in microseconds. Both ends are rounded to nanoseconds, so that nested events stay nested."""
        first, last = round(1e9 * (start - self._started)), round(1e9 * (start + seconds - self._started))
        return {"ph": "X", "pid": 1, "tid": 1, "ts": first / 1000, "dur": (last - first) / 1000}


def _metadata(kind: str, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
