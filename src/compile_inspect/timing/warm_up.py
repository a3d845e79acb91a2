"""Calls before the samples: until nothing more is compiled and the times have settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from compile_inspect.capture.compile_counters import compilation_counts

_WINDOW_CALLS = 3
_MAX_CALLS = 60
_MAX_SECONDS = 2.0
# Times have settled if the medians of two windows of three calls differ by no more than this fraction.
_MAX_CHANGE = 0.1

Clock = Callable[[], float]


@dataclass(frozen=True)
class WarmUp:
    """The result of the warm-up calls."""

    first_seconds: float
    calls: int
    settled: bool
    compiled: bool
    """Whether they compiled something, although the variant had been called before."""


def warm_up(
    call: Callable[[], object],
    *,
    clock: Clock = perf_counter,
    counts: Callable[[], object] = compilation_counts,
) -> WarmUp:
    """Call until three calls in a row compile nothing and take as long as the previous three, for at most two seconds.

    `call` must wait for the device itself.
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
        uncompiled = times[compiled_at:]
        if len(uncompiled) >= 2 * _WINDOW_CALLS:
            last, previous = median(uncompiled[-_WINDOW_CALLS:]), median(uncompiled[-2 * _WINDOW_CALLS : -_WINDOW_CALLS])
            if abs(last - previous) <= _MAX_CHANGE * previous:
                return WarmUp(times[0], len(times), True, compiled_at > 0)
        # With slow calls, waiting longer does not make the times more settled.
        if len(times) >= _MAX_CALLS or (clock() - started > _MAX_SECONDS and len(uncompiled) >= _WINDOW_CALLS):
            return WarmUp(times[0], len(times), False, compiled_at > 0)
