"""The quasi-Newton matrices."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory, UpdateOutcome, curvature_pair, limit_growth


def pairs(size: int, count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps, and changes of the gradient of a quadratic function."""
    generator = np.random.default_rng(seed)
    root = generator.standard_normal((size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    return [(s, matrix @ s) for s in generator.standard_normal((count, size))]


def dense(hessian: InverseHessian, size: int) -> np.ndarray:
    return hessian.apply(np.eye(size))


def textbook(matrix: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The BFGS formula for the inverse as it is written in books."""
    rho = 1.0 / (s @ y)
    left = np.eye(len(s)) - rho * np.outer(s, y)
    return left @ matrix @ left.T + rho * np.outer(s, s)


def test_the_secant_equation_and_symmetry() -> None:
    hessian = FullMemory(6)
    for s, y in pairs(6, 10):
        hessian.update(curvature_pair(s, y, None, 0.2))
        np.testing.assert_allclose(hessian.apply(y), s, atol=1e-9 * np.abs(hessian.matrix).max())
        np.testing.assert_array_equal(hessian.matrix, hessian.matrix.T)
        assert np.linalg.eigvalsh(hessian.matrix)[0] > 0


def test_the_formula_of_the_books() -> None:
    hessian, matrix = FullMemory(4, scale=False), np.eye(4)
    for s, y in pairs(4, 7):
        assert hessian.update(curvature_pair(s, y, None, 0.0)) is UpdateOutcome.UPDATED
        matrix = textbook(matrix, s, y)
        np.testing.assert_allclose(hessian.matrix, matrix, rtol=1e-8, atol=1e-10)


def test_the_first_update_scales() -> None:
    (s, y), (s2, y2) = pairs(3, 2)
    for gamma in (1.0, 0.01):
        hessian = FullMemory(3, gamma=gamma)
        assert hessian.update(curvature_pair(s, y, None, 0.0)) is UpdateOutcome.SCALED
        np.testing.assert_allclose(hessian.matrix, textbook(s @ y / (y @ y) * np.eye(3), s, y), rtol=1e-10, atol=1e-14)
        assert hessian.update(curvature_pair(s2, y2, None, 0.0)) is UpdateOutcome.UPDATED


def test_limited_memory_with_room_for_all_pairs_is_the_full_matrix() -> None:
    full, limited = FullMemory(5), LimitedMemory(5, pairs=20, fixed_scaling=True)
    for s, y in pairs(5, 12, seed=3):
        pair = curvature_pair(s, y, None, 0.2)
        full.update(pair)
        limited.update(pair)
        np.testing.assert_allclose(dense(limited, 5), full.matrix, rtol=1e-6, atol=1e-8 * np.abs(full.matrix).max())
        np.testing.assert_allclose(limited.apply(y), s, atol=1e-8)


def test_limited_memory_is_the_formula_over_the_last_pairs() -> None:
    given = pairs(6, 9, seed=1)
    limited = LimitedMemory(6, pairs=4)
    for s, y in given:
        assert limited.update(curvature_pair(s, y, None, 0.0)) is UpdateOutcome.SCALED
    s, y = given[-1]
    matrix = s @ y / (y @ y) * np.eye(6)
    for s, y in given[-4:]:
        matrix = textbook(matrix, s, y)
    assert limited.steps.shape == (4, 6)
    np.testing.assert_allclose(dense(limited, 6), matrix, rtol=1e-9, atol=1e-11)
    vector = np.arange(6.0)
    np.testing.assert_allclose(limited.apply(vector), matrix @ vector, rtol=1e-9, atol=1e-9)


def test_a_fixed_scaling_is_kept() -> None:
    given = pairs(4, 5)
    limited = LimitedMemory(4, pairs=3, fixed_scaling=True)
    outcomes = [limited.update(curvature_pair(s, y, None, 0.0)) for s, y in given]
    assert outcomes == [UpdateOutcome.SCALED, *[UpdateOutcome.UPDATED] * 4]
    s, y = given[0]
    assert limited.gamma == pytest.approx(s @ y / (y @ y))


@pytest.mark.parametrize("hessian", [FullMemory(3), LimitedMemory(3, pairs=5)], ids=["full", "limited"])
def test_updates_that_would_spoil_the_matrix_are_skipped(hessian: InverseHessian) -> None:
    s = np.array([1.0, 0.0, 0.0])
    hessian.update(curvature_pair(s, np.array([2.0, 1.0, 0.0]), None, 0.0))
    before = dense(hessian, 3).copy()
    assert hessian.update(curvature_pair(s, -s, None, 0.0)) is UpdateOutcome.NOT_POSITIVE
    assert hessian.update(curvature_pair(s, np.zeros(3), None, 0.0)) is UpdateOutcome.NOT_POSITIVE
    assert hessian.update(curvature_pair(s, np.full(3, np.nan), None, 0.0)) is UpdateOutcome.NOT_POSITIVE
    assert hessian.update(curvature_pair(s, np.array([1.0, np.inf, 0.0]), None, 0.0)) in (
        UpdateOutcome.NOT_FINITE,
        UpdateOutcome.NOT_POSITIVE,
    )
    np.testing.assert_array_equal(dense(hessian, 3), before)


@pytest.mark.parametrize("hessian", [FullMemory(3), LimitedMemory(3, pairs=5)], ids=["full", "limited"])
@pytest.mark.parametrize("size", [1e-170, 1e-200, 1e-300])
def test_changes_whose_squares_underflow_do_no_harm(hessian: InverseHessian, size: float) -> None:
    """1e-170 squared is 0, and the first update scales the matrix by a quotient with such a square below."""
    hessian.update(curvature_pair(np.array([1e100, 0.0, 0.0]), np.array([size, size, 0.0]), None, 0.0))
    assert np.isfinite(dense(hessian, 3)).all()


def test_an_update_beyond_the_largest_number_is_skipped() -> None:
    hessian = FullMemory(2, scale=False)
    tiny = np.array([1e-200, 0.0])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        outcome = hessian.update(curvature_pair(tiny, np.array([1e-150, 1e150]), None, 0.0))
    assert outcome in (UpdateOutcome.NOT_FINITE, UpdateOutcome.NOT_POSITIVE)
    np.testing.assert_array_equal(hessian.matrix, np.eye(2))


@pytest.mark.parametrize("damping", [0.1, 0.2, 0.5])
def test_damping_makes_the_curvature_positive(damping: float) -> None:
    generator = np.random.default_rng(2)
    for _ in range(20):
        s, y, b = generator.standard_normal((3, 4))
        b *= np.sign(s @ b)
        pair = curvature_pair(s, y, b, damping)
        assert pair.product == pytest.approx(pair.s @ pair.y, abs=1e-12)
        assert pair.product >= damping * (s @ b) - 1e-12
        assert pair.damped == (s @ y < damping * (s @ b))
        if pair.damped:
            assert pair.product == pytest.approx(damping * (s @ b))
        else:
            assert pair.y is y
        np.testing.assert_array_equal(pair.s, s)


def test_no_damping_without_a_reference() -> None:
    s, y = np.array([1.0, 0.0]), np.array([-1.0, 0.0])
    assert not curvature_pair(s, y, None, 0.2).damped
    assert not curvature_pair(s, y, s, 0.0).damped
    assert curvature_pair(s, y, s, 0.2).damped


@pytest.mark.parametrize("seed", range(5))
def test_growth_of_the_matrix_is_limited(seed: int) -> None:
    generator = np.random.default_rng(seed)
    hessian = FullMemory(3, scale=False)
    s, y = 1e-6 * generator.standard_normal(3), generator.standard_normal(3)
    y *= np.sign(s @ y)
    pair = limit_growth(curvature_pair(s, y, None, 0.0), hessian.apply(y), 1e-2)
    assert pair.damped
    assert pair.product == pytest.approx(pair.s @ pair.y)
    assert pair.product == pytest.approx(1e-2 * (y @ y))
    np.testing.assert_array_equal(pair.y, y)
    hessian.update(pair)
    np.testing.assert_allclose(hessian.apply(y), pair.s, atol=1e-12)
    assert np.linalg.norm(hessian.matrix, 2) < 1e3


def test_a_tame_pair_is_learnt_as_it_is() -> None:
    s, y = pairs(3, 1)[0]
    pair = curvature_pair(s, y, None, 0.0)
    assert limit_growth(pair, FullMemory(3).apply(1e-3 * y), 1e-2) is pair


@pytest.mark.parametrize("lower_large", [False, True])
def test_a_regularized_matrix_has_the_condition_number_asked_for(lower_large: bool) -> None:
    generator = np.random.default_rng(0)
    vectors = np.linalg.qr(generator.standard_normal((5, 5)))[0]
    values = np.array([1e-6, 1e-3, 1.0, 1e2, 1e5])
    hessian = FullMemory(5, (vectors * values) @ vectors.T)
    regular = hessian.regularized(1e4, lower_large=lower_large)
    found = np.linalg.eigvalsh(regular.matrix)
    assert found[-1] / found[0] == pytest.approx(1e4, rel=1e-4)
    expected = np.minimum(values, 1e-2) if lower_large else np.maximum(values, 10.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian.matrix)[-1], 1e5)  # the matrix itself is untouched
    assert hessian.regularized(1e12, lower_large=lower_large) is hessian


def test_an_indefinite_matrix_is_made_definite() -> None:
    regular = FullMemory(2, np.diag([-1.0, 4.0])).regularized(100.0, lower_large=True)
    np.testing.assert_allclose(np.linalg.eigvalsh(regular.matrix), [0.04, 4.0])


def test_reset_forgets_everything() -> None:
    initial = np.diag([2.0, 3.0])
    full, limited = FullMemory(2, initial, gamma=0.5), LimitedMemory(2, pairs=3, gamma=0.5)
    np.testing.assert_array_equal(full.matrix, initial)
    for hessian in (full, limited):
        for s, y in pairs(2, 3):
            hessian.update(curvature_pair(s, y, None, 0.0))
        hessian.reset()
        np.testing.assert_array_equal(dense(hessian, 2), 0.5 * np.eye(2))
    np.testing.assert_array_equal(initial, np.diag([2.0, 3.0]))  # the user's array is not changed


@pytest.mark.parametrize("make", [lambda: FullMemory(3), lambda: LimitedMemory(3, pairs=2)], ids=["full", "limited"])
def test_arrays_restore_it(make: type) -> None:
    hessian, other = make(), make()
    given = pairs(3, 6)
    for s, y in given[:5]:
        hessian.update(curvature_pair(s, y, None, 0.0))
    other.restore({name: np.array(value) for name, value in hessian.arrays().items()})
    for each in (hessian, other):
        each.update(curvature_pair(*given[5], None, 0.0))
    np.testing.assert_array_equal(dense(hessian, 3), dense(other, 3))
