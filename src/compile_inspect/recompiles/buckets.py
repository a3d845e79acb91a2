"""Bucket sizes for padding: few enough to compile one version for each, close enough to waste little computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from compile_inspect.records.forecast import Buckets

MAX_BUCKETS = 8
_MAX_DISTINCT_SIZES = 400


def powers_of_two(sizes: Sequence[int]) -> Buckets:
    """The powers of two, from 2 on, that the sizes need: torch compiles sizes 0 and 1 separately.

    >>> powers_of_two([1, 3, 5, 60])
    Buckets(sizes=(2, 4, 8, 64), waste_percent=11.5..., rule='powers of two')
    """
    bucket_sizes = sorted({max(2, 1 << (size - 1).bit_length()) if size else 2 for size in sizes})
    return _buckets(bucket_sizes, sizes, "powers of two")


def multiples(sizes: Sequence[int], modulus: int) -> Buckets:
    """The multiples of a number that the sizes need.

    >>> multiples([3, 8, 20], 8).sizes
    (8, 24)
    """
    bucket_sizes = sorted({max(1, -(-size // modulus)) * modulus for size in sizes})
    return _buckets(bucket_sizes, sizes, f"multiples of {modulus}")


def least_waste(sizes: Sequence[int], count: int) -> Buckets:
    """The `count` bucket sizes, or fewer, that minimize padding over the observed sizes.

    >>> least_waste([2, 3, 4, 30, 31, 32], 2).sizes
    (4, 32)
    """
    times = Counter(max(2, size) for size in sizes)
    distinct = sorted(times)
    if len(distinct) > _MAX_DISTINCT_SIZES:  # for so many sizes, a regular subset is just as good
        distinct = sorted({*distinct[:: len(distinct) // _MAX_DISTINCT_SIZES + 1], distinct[-1]})
        times = Counter(next(item for item in distinct if item >= max(2, size)) for size in sizes)
    calls = [0, *accumulate(times[size] for size in distinct)]

    @cache
    def best(last: int, remaining: int) -> tuple[int, tuple[int, ...]]:
        """Elements computed, and buckets, for the first `last` sizes with at most `remaining` buckets, including the last."""
        largest = distinct[last - 1]
        choices: list[tuple[int, tuple[int, ...]]] = [(largest * calls[last], (largest,))]
        if remaining > 1:
            for start in range(1, last):
                before, bucket_sizes = best(start, remaining - 1)
                choices.append((before + largest * (calls[last] - calls[start]), (*bucket_sizes, largest)))
        return min(choices)

    bucket_sizes = best(len(distinct), max(1, min(count, len(distinct))))[1] if distinct else (2,)
    return _buckets(bucket_sizes, sizes, "least padding")


def _buckets(bucket_sizes: Sequence[int], sizes: Sequence[int], rule: str) -> Buckets:
    unmeasured = Buckets(tuple(bucket_sizes), 0.0, rule)
    computed = sum(unmeasured.bucket(size) for size in sizes)
    return Buckets(tuple(bucket_sizes), round(100 * (computed - sum(sizes)) / computed, 2) if computed else 0.0, rule)


def proposals(sizes: Sequence[int]) -> tuple[Buckets, ...]:
    """Buckets worth trying, those with the least padding first; none if every size would be its own bucket."""
    distinct = set(sizes)
    if len(distinct) < 2:
        return ()
    powers = powers_of_two(sizes)
    fitted = least_waste(sizes, min(len(powers.sizes), MAX_BUCKETS))
    candidates = {item.sizes: item for item in (powers, fitted) if len(item.sizes) < len(distinct)}
    return tuple(sorted(candidates.values(), key=lambda item: (item.waste_percent, len(item.sizes))))
