"""After how many calls the time spent on a build has come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from compile_inspect.records.timing import Payback

# So much at either end is set aside: one long interruption would else decide. No more, for what is paid back is a sum: of
# nine workloads, windows of 50 calls with a quarter set aside promised 7 % fewer gains than came, with this 6 %.
_TRIMMED = 0.1
# Two-sided 95 % quantiles of Student's distribution; between the entries the smaller one's degrees hold.
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.0, 120: 1.98}
_NORMAL = 1.96
_BLOCKS = 10


def predict_payback(
    build_seconds: float, eager_samples: Sequence[float], variant_samples: Sequence[float], *, passing: float = 0.0
) -> Payback:
    """Calls after which a build of `build_seconds` is paid back by faster calls, with a 95 % interval.

    Samples of one round belong together: what slows a round slows both. Some 50 rounds are enough; spread over seconds they
    know more about a machine that others use too. `passing` seconds of what a call gains may be gone later, since they come
    from something that comes and goes: the interval reaches to there.

    >>> predict_payback(10.0, [0.003] * 50, [0.001] * 50).calls
    5000
    >>> predict_payback(10.0, [0.001] * 50, [0.003] * 50).never
    True
    """
    if build_seconds < 0 or not math.isfinite(build_seconds):
        raise ValueError(f"build_seconds is a number of seconds from 0, not {build_seconds}")
    if len(eager_samples) != len(variant_samples):
        raise ValueError(
            f"samples belong together round by round, but there are {len(eager_samples)} and {len(variant_samples)} of them"
        )
    if not eager_samples:
        raise ValueError("there are no samples to predict from")
    gains = [slow - fast for slow, fast in zip(eager_samples, variant_samples, strict=True)]
    gain, uncertainty = trimmed_mean(gains)
    uncertainty = max(uncertainty, _uncertainty_of_blocks(gains))
    return Payback(
        calls=_calls(build_seconds, gain),
        low=_calls(build_seconds, gain + uncertainty),
        high=_calls(build_seconds, gain - uncertainty - passing),
        build_seconds=build_seconds,
        gain_seconds=gain,
    )


def trimmed_mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean without a tenth at either end, and half the width of its 95 % interval (Tukey and McLaughlin, 1963).

    >>> trimmed_mean([1.0] * 9 + [100.0])
    (1.0, 0.0)
    """
    count = len(values)
    cut = int(_TRIMMED * count)
    ordered = sorted(values)
    kept = ordered[cut : count - cut]
    if len(kept) < 2:
        return fmean(kept), math.inf if len(kept) == 1 else 0.0
    # What was set aside still counts for the scatter, at the value of its nearest neighbor.
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    error = math.sqrt(variance(winsorized) / count) / (len(kept) / count)
    return fmean(kept), _student(len(kept) - 1) * error


def _uncertainty_of_blocks(values: Sequence[float]) -> float:
    """Half the width of a 95 % interval of the mean, from the means of ten stretches of rounds.

    Rounds that follow one another are alike, and so less evidence than their number says: a machine that is busy for a
    second slows hundreds of them. The stretches differ by that.
    """
    length = len(values) // _BLOCKS
    if length < 3:
        return 0.0
    means = [trimmed_mean(values[start * length : (start + 1) * length])[0] for start in range(_BLOCKS)]
    return _student(_BLOCKS - 1) * math.sqrt(variance(means) / _BLOCKS)


def _student(degrees: int) -> float:
    if degrees > 120:
        return _NORMAL
    return _STUDENT[max(known for known in _STUDENT if known <= degrees)]


def _calls(build_seconds: float, gain: float) -> int | None:
    """Calls until a gain has made up for the build; None where there is no gain."""
    if gain <= 0:
        return None
    return 0 if math.isinf(gain) else math.ceil(round(build_seconds / gain, 6))
