"""Numbers as pages show them: ratios with their spread, durations, Markdown tables.

A repeated measurement is a list of values. Where the values were not stored, it is a list of their median, smallest
and largest; all functions here treat both alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

RESAMPLES = 2000


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios.

    >>> round(geometric_mean([2.0, 8.0]), 6)
    4.0
    """
    return math.exp(statistics.fmean(math.log(value) for value in values))


def spread(values: Sequence[float], digits: int = 3) -> str:
    """The median, with the smallest and the largest value if there are several.

    >>> spread([2.0, 1.0, 4.0]), spread([2.0]), spread([])
    ('2 (1 to 4)', '2', '–')
    """
    if not values:
        return "–"
    middle = f"{statistics.median(values):.{digits}g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}g} to {max(values):.{digits}g})"


def duration(seconds: float | None) -> str:
    """Seconds in the unit that suits them.

    >>> duration(0.0123), duration(12.3), duration(None)
    ('12.3 ms', '12.3 s', '–')
    """
    if seconds is None:
        return "–"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash where there is none.

    >>> number(1.2345), number(None)
    ('1.23', '–')
    """
    return "–" if value is None else f"{value:.{digits}g}"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [[1, 2]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [headings, ["---"] * len(headings), *rows]
    text = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(headings)
    return "\n".join(text)


def percentages(seconds: Mapping[str, float]) -> dict[str, float]:
    """The share of each part in percent, the largest first.

    >>> percentages({"QP": 1.0, "search": 3.0})
    {'search': 75.0, 'QP': 25.0}
    """
    total = sum(seconds.values())
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return {part: round(100 * share / total, 1) for part, share in ordered} if total else {}


def largest(shares: Mapping[str, float], count: int) -> str:
    """The largest shares as text.

    >>> largest({"QP": 25.0, "search": 75.0}, 1)
    'search 75 %'
    """
    ordered = sorted(shares.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{part} {share:.0f} %" for part, share in ordered)


def median(values: Sequence[float]) -> float:
    """The median of the values."""
    return statistics.median(values)


def status_words(status: str) -> str:
    """The name of a status in words.

    >>> status_words("ITERATION_LIMIT")
    'iteration limit'
    """
    return status.lower().replace("_", " ")


def mean_with_interval(ratios: Sequence[float]) -> str:
    """The geometric mean with a 95 % bootstrap interval.

    >>> mean_with_interval([2.0, 2.0]), mean_with_interval([])
    ('2.000 (2.000–2.000)', '–')
    """
    if not ratios:
        return "–"
    import numpy as np

    logarithms = np.log(ratios)
    chosen = np.random.default_rng(0).integers(len(ratios), size=(RESAMPLES, len(ratios)))
    low, high = np.exp(np.percentile(logarithms[chosen].mean(axis=1), [2.5, 97.5]))
    return f"{geometric_mean(ratios):.3f} ({low:.3f}–{high:.3f})"
