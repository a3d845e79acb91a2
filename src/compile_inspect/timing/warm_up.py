"""Calls before the samples: until nothing is compiled any more and the times have settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from compile_inspect.capture.compile_counters import compilation_counts

_WINDOW = 3
_MOST_CALLS = 60
_MOST_SECONDS = 2.0
# Two windows of three calls that differ by less are taken for settled.
_CLOSE = 0.1

Clock = Callable[[], float]


@dataclass(frozen=True)
class WarmUp:
    """How the first calls went."""

    first_seconds: float
    calls: int
    settled: bool
    compiled: bool
    """Whether something was compiled in them, although the variant had been called before."""


def warm_up(
    call: Callable[[], object],
    *,
    clock: Clock = perf_counter,
    counts: Callable[[], object] = compilation_counts,
) -> WarmUp:
    """Call until three calls in a row compile nothing and take as long as the three before, two seconds at most.

    `call` waits for the device itself.
    """
    started = clock()
    times: list[float] = []
    compiled_at = 0
    before = counts()
    while True:
        begin = clock()
        call()
        times.append(clock() - begin)
        after = counts()
        if after != before:
            compiled_at, before = len(times), after
        quiet = times[compiled_at:]
        if len(quiet) >= 2 * _WINDOW:
            last, previous = median(quiet[-_WINDOW:]), median(quiet[-2 * _WINDOW : -_WINDOW])
            if abs(last - previous) <= _CLOSE * previous:
                return WarmUp(times[0], len(times), True, compiled_at > 0)
        # A second of calls that take ten each is not more settled for being longer.
        if len(times) >= _MOST_CALLS or (clock() - started > _MOST_SECONDS and len(quiet) >= _WINDOW):
            return WarmUp(times[0], len(times), False, compiled_at > 0)
