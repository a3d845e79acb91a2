"""What the machine did besides: other processes, and the frequency of its CPU."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from compile_inspect.records.timing import MeasurementWarning, Summary
from compile_inspect.timing.noise import median_interval
from compile_inspect.timing.page_faults import FEW_PAGES, seconds_for
from compile_inspect.timing.warm_up import WarmUp

_PROC_STAT = Path("/proc/stat")
_FREQUENCIES = Path("/sys/devices/system/cpu")
_BUSY = 0.2
_CHANGED = 0.1
_FEW = 10
_NOISY = 0.1
_SLOW_FIRST = 5.0
_DRIFT = 0.05
_MANY_OUTLIERS = 0.05
_FETCHING = 0.1


@dataclass(frozen=True)
class Conditions:
    """A moment: the clock, CPU seconds of all processes and of this one, and the CPU frequency; None where not told."""

    clock: float
    all_seconds: float | None
    own_seconds: float
    frequency: float | None

    @classmethod
    def now(cls) -> Conditions:
        """Read them."""
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return cls(perf_counter(), _busy_seconds(), own, _frequency())


def doubts_between(before: Conditions, after: Conditions, processors: int) -> tuple[MeasurementWarning, ...]:
    """What two moments say about the time between them.

    >>> start = Conditions(0.0, 100.0, 5.0, 3e9)
    >>> doubts_between(start, Conditions(10.0, 120.0, 15.0, 2e9), processors=2)
    (<MeasurementWarning.FREQUENCY_CHANGE: ...>, <MeasurementWarning.CPU_CONTENTION: ...>)
    >>> doubts_between(start, Conditions(10.0, 111.0, 15.0, 3e9), processors=2)
    ()
    """
    found = []
    if before.frequency and after.frequency and abs(after.frequency - before.frequency) > _CHANGED * before.frequency:
        found.append(MeasurementWarning.FREQUENCY_CHANGE)
    if before.all_seconds is not None and after.all_seconds is not None:
        others = after.all_seconds - before.all_seconds - (after.own_seconds - before.own_seconds)
        if others > _BUSY * processors * (after.clock - before.clock):
            found.append(MeasurementWarning.CPU_CONTENTION)
    return tuple(found)


def doubts_about(
    samples: tuple[float, ...], summary: Summary, warm: WarmUp, *, faults: float = 0.0
) -> tuple[MeasurementWarning, ...]:
    """What the samples themselves say against trusting them; `faults` are the page faults of a call."""
    found = []
    if warm.first_seconds > _SLOW_FIRST * summary.median:
        found.append(MeasurementWarning.SLOW_FIRST_CALL)
    if not warm.settled:
        found.append(MeasurementWarning.UNFINISHED_WARM_UP)
    ordinary = sorted(samples)[len(samples) // 4 : len(samples) - len(samples) // 4]
    if ordinary[-1] - ordinary[0] > _NOISY * summary.median:
        found.append(MeasurementWarning.NOISE)
    if len(summary.outliers) > max(1.0, _MANY_OUTLIERS * len(samples)):
        found.append(MeasurementWarning.OUTLIERS)
    if drifted(samples):
        found.append(MeasurementWarning.DRIFT)
    if len(samples) < _FEW:
        found.append(MeasurementWarning.FEW_SAMPLES)
    if faults > FEW_PAGES and seconds_for(faults) > _FETCHING * summary.median:
        found.append(MeasurementWarning.PAGE_FAULTS)
    return tuple(found)


def drifted(samples: tuple[float, ...]) -> bool:
    """Whether the medians of the first and the last third have intervals that are 5 % apart.

    >>> drifted((1.0, 1.1, 0.9) * 10), drifted((1.0,) * 10 + (1.1,) * 10 + (1.2,) * 10)
    (False, True)
    """
    third = len(samples) // 3
    if third < 3:
        return False
    (low, high), (last_low, last_high) = median_interval(samples[:third]), median_interval(samples[-third:])
    return last_low > high * (1 + _DRIFT) or low > last_high * (1 + _DRIFT)


def _busy_seconds() -> float | None:
    """CPU seconds that all processes together have used since the machine started; Linux tells."""
    try:
        numbers = [int(word) for word in _PROC_STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _waiting, interrupt, soft_interrupt, stolen = [*numbers, *[0] * (8 - len(numbers))]
    return (user + nice + system + interrupt + soft_interrupt + stolen) / os.sysconf("SC_CLK_TCK")


def _frequency() -> float | None:
    """The mean frequency of the processors in Hz, where the machine tells; virtual ones mostly do not."""
    found = []
    for path in _FREQUENCIES.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            found.append(int(path.read_text()) * 1e3)
        except (OSError, ValueError):
            continue
    return sum(found) / len(found) if found else None
