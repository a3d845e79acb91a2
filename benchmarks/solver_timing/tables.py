"""Numbers as they are shown: ratios with their spread, durations, Markdown tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence


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
