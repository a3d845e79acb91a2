"""Least squares within bounds, beside scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from nonsmooth.certify.box_least_squares import box_least_squares


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 12), columns=st.integers(1, 15), rank=st.integers(1, 12))
def test_as_good_as_scipy(seed: int, rows: int, columns: int, rank: int) -> None:
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((rows, min(rank, rows))) @ random.standard_normal((min(rank, rows), columns))
    target, lower = 3 * random.standard_normal(rows), -random.random(columns)
    upper = np.where(random.random(columns) < 0.3, np.inf, random.random(columns))
    lower = np.where(random.random(columns) < 0.2, -np.inf, lower)
    found = box_least_squares(matrix, target, lower, upper)
    assert (found >= lower).all() and (found <= upper).all()
    best = lsq_linear(matrix, target, (lower, upper), method="bvls")
    distance = float(np.linalg.norm(matrix @ found - target))
    assert distance <= float(np.linalg.norm(matrix @ best.x - target)) * (1 + 1e-7) + 1e-7


def test_nothing_to_choose() -> None:
    assert box_least_squares(np.zeros((2, 0)), np.ones(2), np.zeros(0), np.zeros(0)).shape == (0,)
    assert box_least_squares(np.zeros((2, 1)), np.ones(2), np.zeros(1), np.ones(1)) == pytest.approx(0.0)
