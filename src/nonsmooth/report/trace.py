"""The course of a run as a file that https://ui.perfetto.dev and chrome://tracing open."""

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
"""Events that are kept of one run, some 25 bytes each; what comes later is only counted."""
_BLOCK = 1000


class Trace:
    """Collects events, and writes them when it is closed. The file is opened at once, so that a bad path is told at once.

    An event has a name, a begin and a length in seconds of some clock; iterations have figures too.
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
        """The run begins now."""
        self._started = self._last = now

    def add(self, name: str, start: float, seconds: float) -> None:
        """One event; events must lie within one another, or apart."""
        if len(self._events) < 3 * self._max_events:
            self._events.extend((self._names.setdefault(name, len(self._names)), start, seconds))
        else:
            self._full = self._full if self._left_out else start
            self._left_out += 1

    def iteration(self, number: int, figures: Mapping[str, float], now: float) -> None:
        """An iteration that ends now. It began where the one before ended."""
        if not self._left_out:
            finite = {name: value if math.isfinite(value) else str(value) for name, value in figures.items()}
            self._iterations[len(self._events) // 3] = {"name": f"iteration {number}", "cat": "iteration", "args": finite}
        self.add("iteration", self._last, now - self._last)
        self._last = now

    def close(self, now: float) -> None:
        """The run ends now: write the file. Where that fails a warning is logged; the answer of the run is worth more."""
        try:
            with self._file as file:
                file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
                lines: list[str] = []
                for event in self._described(now):
                    lines.append(json.dumps(event))
                    if len(lines) == _BLOCK:
                        file.write(",\n".join(lines) + ",\n")
                        lines.clear()
                lines.append(json.dumps(_metadata("thread_name", "solver")))
                file.write(",\n".join(lines) + "\n]}\n")
        except OSError as error:
            logger.warning("the profile %s could not be written: %s", self._path, error)

    def _described(self, ended: float) -> Iterator[dict[str, Any]]:
        """All events in the format's own terms, an outer one before those within it."""
        yield _metadata("process_name", "nonsmooth")
        yield {"name": "minimize", "cat": "run", **self._interval(self._started, ended - self._started)}
        if self._left_out:
            message = f"{self._left_out} events left out: only {self._max_events} are kept"
            yield {**self._interval(self._full, 0.0), "name": message, "ph": "i", "s": "g"}
        kinds, starts, lengths = self._events[0::3], self._events[1::3], self._events[2::3]
        names = [{"name": name, "cat": "phase"} for name in self._names]
        for index in sorted(range(len(kinds)), key=lambda index: (starts[index], -lengths[index])):
            described = self._iterations.get(index) or names[int(kinds[index])]
            yield {**described, **self._interval(starts[index], lengths[index])}

    def _interval(self, start: float, seconds: float) -> dict[str, Any]:
        """Begin and length in microseconds. Both ends are rounded to nanoseconds, so that what lay within stays within."""
        first, last = round(1e9 * (start - self._started)), round(1e9 * (start + seconds - self._started))
        return {"ph": "X", "pid": 1, "tid": 1, "ts": first / 1000, "dur": (last - first) / 1000}


def _metadata(kind: str, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
