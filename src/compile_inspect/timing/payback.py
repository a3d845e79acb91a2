"""Predict the number of calls after which a build has paid back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from compile_inspect.records.timing import Payback

# This fraction is trimmed at each end, because otherwise one long interruption could decide the result. It is small because
# the payback depends on a sum: over nine workloads, windows of 50 calls underestimated the gain by 7 % with a quarter trimmed
# at each end, and by 6 % with this fraction.
_TRIMMED_FRACTION = 0.1
# Two-sided 95 % quantiles of Student's distribution; between two entries, the one with fewer degrees of freedom is used.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.0, 120: 1.98}
_NORMAL_QUANTILE = 1.96
_BLOCK_COUNT = 10


def predict_payback(
    build_seconds: float, eager_samples: Sequence[float], variant_samples: Sequence[float], *, temporary_gain: float = 0.0
) -> Payback:
    """The number of calls after which faster calls have paid back a build of `build_seconds`, with a 95 % interval.

    Samples are paired by rounds: whatever slows a round slows both calls. About 50 rounds are enough; on a shared machine, they
    are more informative if they are spread over seconds. `temporary_gain` is the part of the gain per call, in seconds, that
    may disappear later: the interval includes the case without it.

    >>> predict_payback(10.0, [0.003] * 50, [0.001] * 50).calls
    5000
    >>> predict_payback(10.0, [0.001] * 50, [0.003] * 50).never_pays
    True
    """
    if build_seconds < 0 or not math.isfinite(build_seconds):
        raise ValueError(f"build_seconds must be a finite number of at least 0, not {build_seconds}")
    if len(eager_samples) != len(variant_samples):
        raise ValueError(f"samples are paired by rounds, but there are {len(eager_samples)} and {len(variant_samples)} of them")
    if not eager_samples:
        raise ValueError("there are no samples to predict from")
    gains = [slow - fast for slow, fast in zip(eager_samples, variant_samples, strict=True)]
    gain, uncertainty = trimmed_mean(gains)
    uncertainty = max(uncertainty, _uncertainty_of_blocks(gains))
    return Payback(
        calls=_calls(build_seconds, gain),
        low=_calls(build_seconds, gain + uncertainty),
        high=_calls(build_seconds, gain - uncertainty - temporary_gain),
        build_seconds=build_seconds,
        gain_seconds=gain,
    )


def trimmed_mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean without the lowest and highest tenth, and half the width of its 95 % interval (Tukey and McLaughlin, 1963).

    >>> trimmed_mean([1.0] * 9 + [100.0])
    (1.0, 0.0)
    """
    count = len(values)
    cut = int(_TRIMMED_FRACTION * count)
    ordered = sorted(values)
    middle = ordered[cut : count - cut]
    if len(middle) < 2:
        return fmean(middle), math.inf if len(middle) == 1 else 0.0
    # Trimmed values still count for the scatter, at the value of the nearest remaining one.
    winsorized = [middle[0]] * cut + middle + [middle[-1]] * cut
    error = math.sqrt(variance(winsorized) / count) / (len(middle) / count)
    return fmean(middle), _student_quantile(len(middle) - 1) * error


def _uncertainty_of_blocks(values: Sequence[float]) -> float:
    """Half the width of a 95 % interval of the mean, from the means of ten blocks of rounds.

    Consecutive rounds are correlated, so they are less evidence than their number suggests: a machine that is busy for a second
    slows hundreds of them. The means of the blocks show this variation.
    """
    length = len(values) // _BLOCK_COUNT
    if length < 3:
        return 0.0
    means = [trimmed_mean(values[start * length : (start + 1) * length])[0] for start in range(_BLOCK_COUNT)]
    return _student_quantile(_BLOCK_COUNT - 1) * math.sqrt(variance(means) / _BLOCK_COUNT)


def _student_quantile(degrees: int) -> float:
    if degrees > 120:
        return _NORMAL_QUANTILE
    return _STUDENT[max(known for known in _STUDENT if known <= degrees)]


def _calls(build_seconds: float, gain: float) -> int | None:
    """Calls until the gain has made up for the build; None if there is no gain."""
    if gain <= 0:
        return None
    return 0 if math.isinf(gain) else math.ceil(round(build_seconds / gain, 6))
