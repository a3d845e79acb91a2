"""Numbers in readable form."""

from __future__ import annotations

import math
from collections.abc import Mapping

from compile_inspect.wording.plain import one_line

TIMES = "\N{MULTIPLICATION SIGN}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "graph break"), count(2, "graph break"), count(2, "miss", "misses")
    ('1 graph break', '2 graph breaks', '2 misses')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def seconds(value: float | None) -> str:
    """A duration with about three digits.

    >>> [seconds(value) for value in (None, 0.0000042, 0.0123, 3.14159, 65)]
    ['-', '4.2 µs', '12.3 ms', '3.14 s', '1 min 5 s']
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes:,} min {rest} s"
    if value >= 1:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.1f} ms"
    return f"{value * 1e6:.1f} µs" if value else "0 s"


def size(number: int) -> str:
    """A number of bytes.

    >>> size(512), size(3 * 1024 * 1024)
    ('512 B', '3.0 MiB')
    """
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def percent(part: float, whole: float) -> str:
    """A share in percent.

    >>> percent(1, 4), percent(1, 1000), percent(1, 0)
    ('25 %', '<1 %', '-')
    """
    if not whole > 0:
        return "-"
    share = 100 * part / whole
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def sizes(values: Mapping[str, int]) -> str:
    """The sizes of a point.

    >>> sizes({"batch": 8, "tokens": 32})
    'batch 8, tokens 32'
    """
    return ", ".join(f"{one_line(name)} {value:,}" for name, value in values.items())
