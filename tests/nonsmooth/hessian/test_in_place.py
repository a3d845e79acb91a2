"""Updates and products need no further matrices, and no n×n matrix where the memory is limited."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from nonsmooth.hessian import FullMemory, LimitedMemory, curvature_pair


def peak(function: Callable[[], object]) -> int:
    """Bytes asked for during a call, at most at a time."""
    tracemalloc.start()
    function()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_a_dense_update_needs_vectors_only() -> None:
    size = 600
    s = np.random.default_rng(0).standard_normal(size)
    hessian = FullMemory(size, np.eye(size))  # added up from the beginning
    before = hessian._matrix.__array_interface__["data"][0]
    for pair in (curvature_pair(s, 2.0 * s, None, 0.0), curvature_pair(s, 3.0 * s, None, 0.0)):
        assert peak(lambda pair=pair: hessian.update(pair)) < 20 * 8 * size
        assert hessian._matrix.__array_interface__["data"][0] == before
    assert peak(lambda: hessian.apply(s)) < 4 * 8 * size


@pytest.mark.parametrize("columns", [1, 7])
def test_limited_memory_needs_the_result_only(columns: int) -> None:
    size, generator = 20_000, np.random.default_rng(0)
    hessian = LimitedMemory(size, pairs=5)
    pairs = [curvature_pair(s, 2.0 * s, None, 0.0) for s in generator.standard_normal((8, size))]
    for pair in pairs[:6]:
        hessian.update(pair)
    assert peak(lambda: hessian.update(pairs[6])) < 8 * size  # nothing but flags whether all is finite
    given = np.asfortranarray(generator.standard_normal((size, columns)))
    assert peak(lambda: hessian.apply(given[:, 0] if columns == 1 else given)) < 1.2 * columns * 8 * size
    assert peak(lambda: hessian.form(given.T)) < 0.5 * 8 * size


def test_pairs_are_written_into_their_slots() -> None:
    hessian = LimitedMemory(50, pairs=3)
    places = set()
    for s in np.random.default_rng(0).standard_normal((10, 50)):
        hessian.update(curvature_pair(s, 2.0 * s, None, 0.0))
        storage = hessian._storage
        places.add(tuple(array.__array_interface__["data"][0] for array in (storage.steps, storage.changes)))
    assert len(places) == 1
