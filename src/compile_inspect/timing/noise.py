"""Statistics of duration samples, and whether two lists of samples differ significantly.

All of it uses medians and order statistics: durations have long tails, and one interruption changes a mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, median, stdev

from compile_inspect.records.timing import Outlier, Speedup, Summary

# Iglewicz and Hoaglin (1993): a sample with a modified z-score over 3.5 is an outlier. The factor 1.4826 scales the median
# absolute deviation of a normal distribution to its standard deviation.
MAX_DEVIATIONS = 3.5
_DEVIATION_SCALE = 1.4826
_MIN_SAMPLES = 5


def summarize(samples: Sequence[float]) -> Summary:
    """Median with its 95 % confidence interval, mean, deviation and outliers.

    >>> summary = summarize([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 9.0])
    >>> summary.median, summary.low, summary.high, [item.position for item in summary.outliers]
    (1.0, 0.9, 9.0, [6])
    """
    if not samples:
        raise ValueError("there are no samples to summarize")
    low, high = median_interval(samples)
    return Summary(
        count=len(samples),
        median=median(samples),
        low=low,
        high=high,
        mean=fmean(samples),
        deviation=stdev(samples) if len(samples) > 1 else 0.0,
        outliers=outliers(samples),
    )


def outliers(samples: Sequence[float]) -> tuple[Outlier, ...]:
    """Samples more than 3.5 scaled median absolute deviations from the median.

    >>> outliers([1.0, 1.0, 1.0, 2.0])
    ()

    If more than half of the samples are equal, their scatter is unknown and no sample is called an outlier.
    """
    middle = median(samples)
    scale = _DEVIATION_SCALE * median(abs(sample - middle) for sample in samples)
    if scale == 0.0:
        return ()
    distances = [abs(sample - middle) / scale for sample in samples]
    return tuple(
        Outlier(position, samples[position], round(distance, 2))
        for position, distance in enumerate(distances)
        if distance > MAX_DEVIATIONS
    )


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median by order statistics; the full range if there are fewer than six samples.

    It makes no assumption about the distribution: the number of samples below the true median is binomial.

    >>> median_interval(range(100))
    (39, 60)
    """
    ordered = sorted(samples)
    below = _below(len(ordered))
    return ordered[below], ordered[len(ordered) - 1 - below]


@lru_cache(maxsize=256)
def _below(count: int) -> int:
    """The largest k such that at most k of `count` samples are below the median with a probability of at most 2.5 %."""
    if count > 1000:  # here the normal approximation is accurate to one sample
        return max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1)
    outcomes, cumulative = 2**count, 0
    for k in range(count):
        cumulative += math.comb(count, k)
        if cumulative > outcomes * 0.025:
            return max(0, k - 1)
    return 0


def ratio(first: Sequence[float], second: Sequence[float]) -> Speedup:
    """The ratio of the second duration to the first, paired by rounds, with a 95 % interval.

    >>> ratio([1.0] * 6, [2.0] * 6)
    Speedup(ratio=2.0, low=2.0, high=2.0)
    """
    ratios = [slow / fast for fast, slow in zip(first, second, strict=True) if fast > 0]
    if not ratios:
        raise ValueError("there are no samples to compare")
    low, high = median_interval(ratios)
    return Speedup(median(ratios), low, high)


def faster(first: Sequence[float], second: Sequence[float], *, by: float = 0.0) -> bool:
    """Whether the first is significantly faster than the second, by at least a fraction `by` of the second.

    Samples are compared round by round, so that a slowdown of the machine affects both. The entire interval of the ratio must
    be beyond `by`, and so must the median ratio of each half of the rounds, so that a burst of other work cannot decide.

    >>> faster([1.0, 1.1, 0.9] * 5, [2.0, 2.1, 1.9] * 5)
    True
    >>> faster([1.0, 1.1, 0.9] * 5, [1.1, 1.0, 0.9] * 5)
    False
    >>> faster([0.98] * 9, [1.0] * 9, by=0.03)
    False
    """
    if len(first) != len(second):
        raise ValueError(f"samples are compared round by round, but there are {len(first)} and {len(second)} of them")
    if not 0.0 <= by < 1.0:
        raise ValueError(f"by must be a fraction from 0 to 1, not {by}")
    if len(first) < _MIN_SAMPLES:
        return False
    min_ratio = 1.0 / (1.0 - by)
    middle = len(first) // 2
    halves = (slice(0, middle), slice(middle, None))
    # Equal samples are not faster, so the comparison is strict.
    return ratio(first, second).low > min_ratio and all(ratio(first[half], second[half]).ratio > min_ratio for half in halves)
