"""Pairs on a device of torch, here the CPU, against those in arrays."""

from __future__ import annotations

import numpy as np
import torch

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian import LimitedMemory, curvature_pair
from nonsmooth.hessian.device import DevicePairs
from nonsmooth.hessian.pairs import HostPairs

SIZE, COUNT = 400, 4


def test_all_products_are_those_of_the_host() -> None:
    generator = np.random.default_rng(0)
    host, there = HostPairs(COUNT, SIZE), DevicePairs(COUNT, SIZE, torch.device("cpu"))
    blocks = [generator.standard_normal(SIZE), generator.standard_normal((2, SIZE))]
    for number in range(10):
        blocks.append(generator.standard_normal(SIZE))
        if len(blocks) > 5:
            del blocks[0]
        rows = Rows(blocks)
        for ours, theirs in zip(host.products(rows), there.products(rows), strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
        s, y = generator.standard_normal((2, SIZE))
        for pairs in (host, there):
            pairs.put(number % COUNT, s, y)
        used = min(number + 1, COUNT)
        vector, weights = generator.standard_normal(SIZE), generator.standard_normal(2 * used)
        for ours, theirs in zip(host.project(vector), there.project(vector), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(host.add(vector.copy(), weights), there.add(vector.copy(), weights), rtol=1e-9, atol=1e-12)
        for ours, theirs in zip(host.arrays(), there.arrays(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    there.clear()
    assert there.project(vector)[0].shape == (0,) and there.products(rows)[2].shape == (len(rows), len(rows))


def test_a_limited_memory_with_them_is_the_same_matrix_and_can_be_saved() -> None:
    generator = np.random.default_rng(1)
    host = LimitedMemory(SIZE, pairs=COUNT)
    there = LimitedMemory(SIZE, pairs=COUNT, storage=DevicePairs(COUNT, SIZE, torch.device("cpu")))
    for _ in range(7):
        s = generator.standard_normal(SIZE)
        y = s * generator.uniform(0.5, 2.0, SIZE)
        for memory in (host, there):
            memory.update(curvature_pair(s, y, None, 0.0))
        vector = generator.standard_normal(SIZE)
        np.testing.assert_allclose(host.apply(vector), there.apply(vector), rtol=1e-9, atol=1e-12)
        rows = Rows([generator.standard_normal(SIZE) for _ in range(3)])
        np.testing.assert_allclose(host.form(rows).matrix, there.form(rows).matrix, rtol=1e-9)
    again = LimitedMemory(SIZE, pairs=COUNT, storage=DevicePairs(COUNT, SIZE, torch.device("cpu")))
    again.restore(there.arrays())
    np.testing.assert_array_equal(again.apply(vector), there.apply(vector))
