"""Memory for long vectors."""

from __future__ import annotations

import gc

import numpy as np

from nonsmooth.arrays import memory as vectors
from nonsmooth.arrays.memory import MIN_MMAP_ENTRIES, long_lived_copy, new_vector


def address(vector: np.ndarray) -> int:
    return int(vector.__array_interface__["data"][0])


def test_a_copy_is_a_copy() -> None:
    for size in (3, MIN_MMAP_ENTRIES - 1, MIN_MMAP_ENTRIES, MIN_MMAP_ENTRIES + 7):
        original = np.arange(float(size))
        copy = long_lived_copy(original)
        np.testing.assert_array_equal(copy, original)
        assert not np.shares_memory(copy, original) and copy.flags.writeable and copy.dtype == np.float64


def test_pages_are_used_again_when_nobody_sees_them() -> None:
    vectors._spare.clear()
    vector = new_vector(MIN_MMAP_ENTRIES)
    vector[:] = 1.0
    first, view = address(vector), vector[10:20][::2]
    del vector
    gc.collect()
    assert address(new_vector(MIN_MMAP_ENTRIES)) != first  # the view still shows its numbers
    assert view.tolist() == [1.0] * 5
    del view
    gc.collect()
    assert first in {
        address(each) for each in (new_vector(MIN_MMAP_ENTRIES), new_vector(MIN_MMAP_ENTRIES), new_vector(MIN_MMAP_ENTRIES))
    }


def test_few_pages_are_spared() -> None:
    many = [new_vector(MIN_MMAP_ENTRIES) for _ in range(10)]
    del many
    gc.collect()
    assert len(vectors._spare) <= 2


def test_pages_of_another_size_are_not_used() -> None:
    vectors._spare.clear()
    first = new_vector(MIN_MMAP_ENTRIES)
    del first
    gc.collect()
    assert len(new_vector(2 * MIN_MMAP_ENTRIES)) == 2 * MIN_MMAP_ENTRIES
