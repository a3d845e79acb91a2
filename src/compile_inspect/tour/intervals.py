"""What may be said about two times: a sentence about a difference needs intervals that do not meet."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.records.timing import Speedup


@dataclass(frozen=True)
class CallTime:
    """The median of a call with the ends of its 95 % interval; without an interval, nothing is claimed of it."""

    median: float
    low: float | None = None
    high: float | None = None

    def quicker_than(self, other: CallTime, *, spread: float = 1.0) -> bool:
        """Whether its whole interval lies below that of the other.

        `spread` is the factor by which calls of the very same code came out apart: less than that shows nothing.

        >>> CallTime(2.0, 1.9, 2.1).quicker_than(CallTime(3.0, 2.9, 3.1))
        True
        >>> CallTime(2.0, 1.9, 2.1).quicker_than(CallTime(3.0, 2.9, 3.1), spread=1.5), CallTime(2.0).quicker_than(CallTime(3.0))
        (False, False)
        """
        if self.high is None or other.low is None:
            return False
        return self.high * max(spread, 1.0) < other.low


def times_as_fast(before: CallTime, after: CallTime) -> str:
    """How much faster the second is than the first, or that this cannot be told.

    >>> times_as_fast(CallTime(4.0, 3.9, 4.1), CallTime(2.0, 1.9, 2.1))
    '2.00 times as fast'
    >>> times_as_fast(CallTime(2.0, 1.9, 2.1), CallTime(2.1, 2.0, 2.2)), times_as_fast(CallTime(2.0), CallTime(1.0))
    ('no difference beyond the noise', 'whether that is a difference was not measured')
    """
    if None in (before.low, before.high, after.low, after.high) or not after.median > 0:
        return "whether that is a difference was not measured"
    if not (before.quicker_than(after) or after.quicker_than(before)):
        return "no difference beyond the noise"
    return f"{before.median / after.median:.2f} times as fast"


def speed_in_words(speed: Speedup | None) -> str:
    """The same for samples taken in turn, where the interval is that of their ratio.

    >>> speed_in_words(Speedup(2.0, 1.9, 2.1)), speed_in_words(Speedup(1.1, 0.9, 1.2)), speed_in_words(None)
    ('2.00 times as fast', 'no difference beyond the noise', 'whether that is a difference was not measured')
    """
    if speed is None:
        return "whether that is a difference was not measured"
    if speed.low <= 1.0 <= speed.high:
        return "no difference beyond the noise"
    return f"{speed.ratio:.2f} times as fast"
