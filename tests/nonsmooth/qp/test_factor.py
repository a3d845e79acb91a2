"""The factor that follows a changing set of entries, against solving from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.qp.factor import Factor


@pytest.mark.parametrize("seed", range(5))
def test_a_long_history_of_changes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((40, 45)) * 10.0 ** draw.uniform(-2, 2, (40, 1))
    matrix = vectors @ vectors.T
    factor, entries = Factor(4), [3, 11, 7]
    factor.rebuild(matrix[np.ix_(entries, entries)])
    for _ in range(200):
        outside = [entry for entry in range(40) if entry not in entries]
        if outside and (len(entries) < 2 or draw.random() < 0.55):
            entry = int(draw.choice(outside))
            factor.append(matrix[entries, entry], matrix[entry, entry])
            entries.append(entry)
        else:
            position = int(draw.integers(len(entries)))
            assert factor.delete(position)
            del entries[position]
        right = draw.standard_normal((len(entries), 2))
        part = matrix[np.ix_(entries, entries)]
        assert factor.count == len(entries)
        scale = np.sqrt(np.diag(part))
        error = (part @ factor.solve(right) - right) / scale[:, None]
        assert np.abs(error).max() <= 1e-6 * np.abs(right / scale[:, None]).max()


def test_a_row_that_depends_on_the_others_gets_a_tiny_pivot() -> None:
    factor = Factor()
    factor.append(np.zeros(0), 1.0)
    factor.append(np.ones(1), 1.0)
    x = factor.solve(np.array([0.0, 1.0]))
    assert np.isfinite(x).all()
    assert x[1] == pytest.approx(-x[0]) and x[1] > 1e10  # far along the direction in which the matrix is flat


def test_a_singular_matrix_is_taken_whole() -> None:
    factor = Factor()
    factor.rebuild(np.ones((3, 3)))
    assert np.abs(np.ones((3, 3)) @ factor.solve(np.ones(3)) - 1.0).max() < 1e-2


def test_a_matrix_that_is_not_definite_still_gives_a_direction() -> None:
    factor = Factor()
    factor.rebuild(np.array([[1.0, 3.0], [3.0, 1.0]]))
    assert np.isfinite(factor.solve(np.ones(2))).all()
