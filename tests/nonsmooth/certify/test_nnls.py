"""Nonnegative least squares, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from nonsmooth.certify import nnls as module
from nonsmooth.certify.nnls import nnls


def system(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    rows, columns = generator.integers(1, 25, 2)
    matrix, target = generator.standard_normal((rows, columns)), generator.standard_normal(rows)
    if kind == "badly scaled":
        matrix *= 10.0 ** generator.integers(-5, 5, columns)
    elif kind == "nearly dependent":
        matrix[:, columns // 2 :] = matrix[:, : columns - columns // 2] * (1.0 + 1e-13)
    elif kind == "dependent":
        matrix[:, columns // 2 :] = matrix[:, : columns - columns // 2]
    elif kind == "simplex":
        matrix, target = np.vstack([matrix, np.ones(columns)]), np.append(np.zeros(rows), 1.0)
    elif kind == "zeros":
        matrix[:, ::2] = 0.0
    return matrix, target


@pytest.mark.parametrize("kind", ["random", "badly scaled", "nearly dependent", "dependent", "simplex", "zeros"])
def test_the_distance_is_that_of_scipy(kind: str) -> None:
    for seed in range(60):
        matrix, target = system(kind, seed)
        x, distance = nnls(matrix, target, maxiter=50 * matrix.shape[1])
        _, expected = scipy.optimize.nnls(matrix, target, maxiter=50 * matrix.shape[1])
        assert (x >= 0).all()
        assert distance == pytest.approx(np.linalg.norm(matrix @ x - target), rel=1e-12, abs=1e-14)
        assert distance <= expected + 1e-10 * np.linalg.norm(target), (kind, seed)


def test_a_combination_that_vanishes_is_found_to_rounding() -> None:
    """What a certificate asks for: gradients whose convex combination is 0."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((6, 5))
    rows[-1] = -generator.uniform(0.1, 1.0, 5) @ rows[:5]
    matrix = np.vstack([rows.T, np.ones(6)])
    x, distance = nnls(matrix, np.append(np.zeros(5), 1.0), maxiter=300)
    assert (x > 0).all() and distance < 1e-14


@pytest.mark.parametrize("size", [1e-6, 1e-8, 1e-10])
def test_a_combination_that_nearly_vanishes_is_as_short_as_it_can_be(size: float) -> None:
    """Two sides of a kink with a little slope along it, and a third gradient that takes that away: gains are tiny."""
    rows = np.array([[1.0, size], [-1.0, size], [1.0, -1e-3 * size]])
    x, _ = nnls(np.vstack([rows.T, np.ones(3)]), np.array([0.0, 0.0, 1.0]), maxiter=150)
    weights = x / x.sum()
    assert np.linalg.norm(weights @ rows) < 0.6 * size
    other, _ = scipy.optimize.nnls(np.vstack([rows.T, np.ones(3)]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(weights, other / other.sum(), atol=1e-6)


def test_many_columns_are_left_to_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    matrix, target = generator.standard_normal((40, 80)), generator.standard_normal(40)
    x, distance = nnls(matrix, target, maxiter=4000)
    monkeypatch.setattr(module, "MAX_COLUMNS_IN_PYTHON", 80)
    other, its = nnls(matrix, target, maxiter=4000)
    np.testing.assert_allclose(x, other, atol=1e-10)
    assert distance == pytest.approx(its)


def test_too_many_solutions_raise() -> None:
    matrix, target = system("simplex", 3)
    with pytest.raises(RuntimeError, match="no solution after 1 least-squares"):
        nnls(matrix, target, maxiter=1)


def test_nothing_to_choose_from() -> None:
    assert nnls(np.zeros((2, 0)), np.array([3.0, 4.0]), maxiter=1)[1] == 5.0
