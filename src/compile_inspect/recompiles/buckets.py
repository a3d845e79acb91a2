"""Sizes to pad to: few enough to compile for each, close enough that little is computed for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from compile_inspect.records.forecast import Buckets

MOST_BUCKETS = 8
_MOST_SIZES = 400


def powers_of_two(sizes: Sequence[int]) -> Buckets:
    """The powers of two, from 2 on, that the sizes need: 0 and 1 are compiled apart from all others.

    >>> powers_of_two([1, 3, 5, 60])
    Buckets(sizes=(2, 4, 8, 64), waste_percent=11.5..., rule='powers of two')
    """
    chosen = sorted({max(2, 1 << (size - 1).bit_length()) if size else 2 for size in sizes})
    return _buckets(chosen, sizes, "powers of two")


def multiples(sizes: Sequence[int], modulus: int) -> Buckets:
    """The multiples of a number that the sizes need.

    >>> multiples([3, 8, 20], 8).sizes
    (8, 24)
    """
    chosen = sorted({max(1, -(-size // modulus)) * modulus for size in sizes})
    return _buckets(chosen, sizes, f"multiples of {modulus}")


def least_waste(sizes: Sequence[int], count: int) -> Buckets:
    """The given number of sizes, or fewer, that leave the least padding over the sizes that were seen.

    >>> least_waste([2, 3, 4, 30, 31, 32], 2).sizes
    (4, 32)
    """
    times = Counter(max(2, size) for size in sizes)
    distinct = sorted(times)
    if len(distinct) > _MOST_SIZES:  # so many that every so manieth is as good
        distinct = sorted({*distinct[:: len(distinct) // _MOST_SIZES + 1], distinct[-1]})
        times = Counter(next(item for item in distinct if item >= max(2, size)) for size in sizes)
    calls = [0, *accumulate(times[size] for size in distinct)]

    @cache
    def best(last: int, left: int) -> tuple[int, tuple[int, ...]]:
        """Elements computed, and buckets, for the first `last` sizes with at most `left` buckets, the last one included."""
        largest = distinct[last - 1]
        choices: list[tuple[int, tuple[int, ...]]] = [(largest * calls[last], (largest,))]
        if left > 1:
            for start in range(1, last):
                before, chosen = best(start, left - 1)
                choices.append((before + largest * (calls[last] - calls[start]), (*chosen, largest)))
        return min(choices)

    chosen = best(len(distinct), max(1, min(count, len(distinct))))[1] if distinct else (2,)
    return _buckets(chosen, sizes, "least padding")


def _buckets(chosen: Sequence[int], sizes: Sequence[int], rule: str) -> Buckets:
    unmeasured = Buckets(tuple(chosen), 0.0, rule)
    computed = sum(unmeasured.bucket(size) for size in sizes)
    return Buckets(tuple(chosen), round(100 * (computed - sum(sizes)) / computed, 2) if computed else 0.0, rule)


def proposals(sizes: Sequence[int]) -> tuple[Buckets, ...]:
    """Buckets worth a trial, the ones with less padding first; none where every size would be a bucket of its own."""
    distinct = set(sizes)
    if len(distinct) < 2:
        return ()
    powers = powers_of_two(sizes)
    fitted = least_waste(sizes, min(len(powers.sizes), MOST_BUCKETS))
    found = {item.sizes: item for item in (powers, fitted) if len(item.sizes) < len(distinct)}
    return tuple(sorted(found.values(), key=lambda item: (item.waste_percent, len(item.sizes))))
