"""Corrections of a multiple of the identity, kept one by one."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.hessian.corrections import INITIAL_CAPACITY, Corrections


def some(count: int, size: int = 7) -> tuple[Corrections, np.ndarray]:
    """That many of them, and the matrix they make."""
    generator = np.random.default_rng(count)
    corrections, matrix = Corrections(size, gamma=1.5), 1.5 * np.eye(size)
    for _ in range(count):
        s, u = generator.standard_normal((2, size))
        corrections.add(s, u)
        matrix += np.outer(s, u) + np.outer(u, s)
    return corrections, matrix


@pytest.mark.parametrize("count", [0, 1, INITIAL_CAPACITY - 1, INITIAL_CAPACITY, INITIAL_CAPACITY + 1, 5 * INITIAL_CAPACITY])
def test_they_are_the_matrix_they_add_up_to(count: int) -> None:
    corrections, matrix = some(count)
    assert len(corrections) == count
    assert len(corrections.rows) == 2 * count
    np.testing.assert_allclose(np.triu(corrections.upper_triangle()), np.triu(matrix), rtol=1e-12, atol=1e-12)
    for columns in (np.arange(7.0), np.ones((7, 1)), np.arange(21.0).reshape(7, 3), np.arange(21.0).reshape(3, 7).T):
        np.testing.assert_allclose(corrections.apply(columns), matrix @ columns, rtol=1e-11, atol=1e-11)


def test_sparse_columns_may_be_given_once_more_without_their_zeros() -> None:
    from scipy.sparse import csr_array

    corrections, matrix = some(5)
    rows = np.eye(7)[2:5] * 3.0
    np.testing.assert_allclose(corrections.apply(rows.T, csr_array(rows)), matrix @ rows.T, rtol=1e-12, atol=1e-12)


def test_what_is_handed_in_may_change_afterwards() -> None:
    corrections = Corrections(2, gamma=1.0)
    s, u = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    corrections.add(s, u)
    s[:] = u[:] = np.nan
    np.testing.assert_array_equal(corrections.apply(np.array([1.0, 1.0])), [2.0, 2.0])
