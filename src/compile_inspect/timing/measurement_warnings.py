"""Circumstances of a measurement: other processes, the CPU frequency, and the samples themselves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from compile_inspect.records.timing import MeasurementWarning, Summary
from compile_inspect.timing.noise import median_interval
from compile_inspect.timing.page_faults import MAX_ORDINARY_FAULTS, seconds_for
from compile_inspect.timing.warm_up import WarmUp

_PROC_STAT = Path("/proc/stat")
_FREQUENCIES = Path("/sys/devices/system/cpu")
_MAX_OTHER_CPU_FRACTION = 0.2
_MAX_FREQUENCY_CHANGE = 0.1
_MIN_SAMPLES = 10
_MAX_SCATTER = 0.1
_MAX_FIRST_CALL_RATIO = 5.0
_MAX_DRIFT = 0.05
_MAX_OUTLIER_FRACTION = 0.05
_MAX_PAGE_FAULT_FRACTION = 0.1


@dataclass(frozen=True)
class Conditions:
    """A snapshot: the clock, CPU seconds of all processes and of this one, and the CPU frequency; None if not available."""

    clock: float
    all_seconds: float | None
    own_seconds: float
    frequency: float | None

    @classmethod
    def now(cls) -> Conditions:
        """Take a snapshot."""
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return cls(perf_counter(), _busy_seconds(), own, _frequency())


def warnings_between(before: Conditions, after: Conditions, processors: int) -> tuple[MeasurementWarning, ...]:
    """Warnings about the time between two snapshots.

    >>> start = Conditions(0.0, 100.0, 5.0, 3e9)
    >>> warnings_between(start, Conditions(10.0, 120.0, 15.0, 2e9), processors=2)
    (<MeasurementWarning.FREQUENCY_CHANGE: ...>, <MeasurementWarning.CPU_CONTENTION: ...>)
    >>> warnings_between(start, Conditions(10.0, 111.0, 15.0, 3e9), processors=2)
    ()
    """
    warnings = []
    old, new = before.frequency, after.frequency
    if old and new and abs(new - old) > _MAX_FREQUENCY_CHANGE * old:
        warnings.append(MeasurementWarning.FREQUENCY_CHANGE)
    if before.all_seconds is not None and after.all_seconds is not None:
        others = after.all_seconds - before.all_seconds - (after.own_seconds - before.own_seconds)
        if others > _MAX_OTHER_CPU_FRACTION * processors * (after.clock - before.clock):
            warnings.append(MeasurementWarning.CPU_CONTENTION)
    return tuple(warnings)


def warnings_about(
    samples: tuple[float, ...], summary: Summary, warm: WarmUp, *, faults: float = 0.0
) -> tuple[MeasurementWarning, ...]:
    """Warnings about the samples; `faults` is the number of page faults per call."""
    warnings = []
    if warm.first_seconds > _MAX_FIRST_CALL_RATIO * summary.median:
        warnings.append(MeasurementWarning.SLOW_FIRST_CALL)
    if not warm.settled:
        warnings.append(MeasurementWarning.UNFINISHED_WARM_UP)
    ordinary = sorted(samples)[len(samples) // 4 : len(samples) - len(samples) // 4]
    if ordinary[-1] - ordinary[0] > _MAX_SCATTER * summary.median:
        warnings.append(MeasurementWarning.NOISE)
    if len(summary.outliers) > max(1.0, _MAX_OUTLIER_FRACTION * len(samples)):
        warnings.append(MeasurementWarning.OUTLIERS)
    if has_drift(samples):
        warnings.append(MeasurementWarning.DRIFT)
    if len(samples) < _MIN_SAMPLES:
        warnings.append(MeasurementWarning.FEW_SAMPLES)
    if faults > MAX_ORDINARY_FAULTS and seconds_for(faults) > _MAX_PAGE_FAULT_FRACTION * summary.median:
        warnings.append(MeasurementWarning.PAGE_FAULTS)
    return tuple(warnings)


def has_drift(samples: tuple[float, ...]) -> bool:
    """Whether the median intervals of the first and the last third are more than 5 % apart.

    >>> has_drift((1.0, 1.1, 0.9) * 10), has_drift((1.0,) * 10 + (1.1,) * 10 + (1.2,) * 10)
    (False, True)
    """
    third = len(samples) // 3
    if third < 3:
        return False
    (low, high), (last_low, last_high) = median_interval(samples[:third]), median_interval(samples[-third:])
    return last_low > high * (1 + _MAX_DRIFT) or low > last_high * (1 + _MAX_DRIFT)


def _busy_seconds() -> float | None:
    """CPU seconds that all processes have used since the machine started; only on Linux."""
    try:
        numbers = [int(word) for word in _PROC_STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _waiting, interrupt, soft_interrupt, stolen = [*numbers, *[0] * (8 - len(numbers))]
    return (user + nice + system + interrupt + soft_interrupt + stolen) / os.sysconf("SC_CLK_TCK")


def _frequency() -> float | None:
    """The mean frequency of the processors in Hz, if available; most virtual machines do not report it."""
    frequencies = []
    for path in _FREQUENCIES.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            frequencies.append(int(path.read_text()) * 1e3)
        except (OSError, ValueError):
            continue
    return sum(frequencies) / len(frequencies) if frequencies else None
