"""Statements about two times: a claim that one is faster needs confidence intervals that do not overlap."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.timing import Speed
from compile_inspect.wording.quantities import TIMES

_UNKNOWN = "the speedup was not measured"
_NO_DIFFERENCE = "no difference beyond the noise"


@dataclass(frozen=True)
class CallTime:
    """The median time of a call with its 95 % confidence interval; without an interval, no comparison is made."""

    median: float
    low: float | None = None
    high: float | None = None

    def is_faster_than(self, other: CallTime, *, spread: float = 1.0) -> bool:
        """Whether the whole interval lies below that of the other.

        `spread` is the ratio between measurements of identical code: a smaller difference shows nothing.

        >>> CallTime(2.0, 1.9, 2.1).is_faster_than(CallTime(3.0, 2.9, 3.1))
        True
        >>> CallTime(2.0, 1.9, 2.1).is_faster_than(CallTime(3.0, 2.9, 3.1), spread=1.5)
        False
        >>> CallTime(2.0).is_faster_than(CallTime(3.0))
        False
        """
        if self.high is None or other.low is None:
            return False
        return self.high * max(spread, 1.0) < other.low


def describe_speedup(before: CallTime, after: CallTime) -> str:
    """The speedup from the first time to the second, or why none can be stated.

    >>> describe_speedup(CallTime(4.0, 3.9, 4.1), CallTime(2.0, 1.9, 2.1))
    'speedup 2.00×'
    >>> describe_speedup(CallTime(2.0, 1.9, 2.1), CallTime(2.1, 2.0, 2.2)), describe_speedup(CallTime(2.0), CallTime(1.0))
    ('no difference beyond the noise', 'the speedup was not measured')
    """
    if None in (before.low, before.high, after.low, after.high) or not after.median > 0:
        return _UNKNOWN
    if not (before.is_faster_than(after) or after.is_faster_than(before)):
        return _NO_DIFFERENCE
    return f"speedup {before.median / after.median:.2f}{TIMES}"


def describe_measured_speedup(speed: Speed | None) -> str:
    """The same for interleaved samples, where the interval is that of their ratio.

    >>> describe_measured_speedup(Speed(2.0, 1.9, 2.1)), describe_measured_speedup(Speed(1.1, 0.9, 1.2))
    ('speedup 2.00×', 'no difference beyond the noise')
    >>> describe_measured_speedup(None)
    'the speedup was not measured'
    """
    if speed is None:
        return _UNKNOWN
    if speed.low <= 1.0 <= speed.high:
        return _NO_DIFFERENCE
    return f"speedup {speed.ratio:.2f}{TIMES}"
