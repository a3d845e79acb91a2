"""The matrices of quadratic programs, and the products they are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nonsmooth.arrays.rows import Rows, inner_products
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory, curvature_pair, products
from nonsmooth.hessian.quadratic_form import sparse_rows

Make = Callable[[int], InverseHessian]
MAKERS = {
    "full": FullMemory,
    "limited": lambda size: LimitedMemory(size, pairs=4),
    "fresh": lambda size: LimitedMemory(size, pairs=4),
}


def learn(hessian: InverseHessian, size: int, count: int, seed: int = 0) -> None:
    generator = np.random.default_rng(seed)
    diagonal = generator.uniform(0.5, 5.0, size)
    for s in generator.standard_normal((count, size)):
        hessian.update(curvature_pair(s, diagonal * s + 0.1 * s.sum(), None, 0.0))


@pytest.mark.parametrize("size", [6, 150, 220], ids=["small", "triangle", "apart"])
@pytest.mark.parametrize("blocks", [False, True], ids=["matrix", "rows"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_form_is_what_it_says(name: str, size: int, blocks: bool) -> None:
    hessian = MAKERS[name](size)
    if name != "fresh":
        learn(hessian, size, 7)
    gradients = np.random.default_rng(1).standard_normal((5, size))
    dense = hessian.apply(np.eye(size))
    form = hessian.form(Rows([gradients[0], gradients[1], gradients[2:]]) if blocks else gradients)
    np.testing.assert_allclose(form.matrix, gradients @ dense @ gradients.T, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(form.matrix, form.matrix.T)
    weights = np.array([0.5, 0.0, 0.2, -1.0, 2.0])
    wanted = dense @ (weights @ gradients)
    np.testing.assert_allclose(form.step(weights), wanted, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(form.step(weights, combined=weights @ gradients), wanted, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(form.step(weights[2:], first=2), dense @ (weights[2:] @ gradients[2:]), rtol=1e-9, atol=1e-10)


def test_a_form_of_an_older_matrix_is_not_used() -> None:
    hessian = LimitedMemory(5, pairs=3)
    learn(hessian, 5, 2)
    form = hessian.form(np.eye(5)[:2])
    learn(hessian, 5, 1)
    with pytest.raises(AssertionError, match="changed"):
        form.step(np.ones(2))


def test_products_stay_right_while_rows_and_pairs_come_and_go() -> None:
    generator = np.random.default_rng(3)
    size, hessian = 40, LimitedMemory(40, pairs=3)
    vectors = list(generator.standard_normal((4, size)))
    for seed in range(8):
        learn(hessian, size, 1, seed)
        vectors = [*vectors[1:], generator.standard_normal(size)]
        rows = Rows([*vectors, generator.standard_normal((2, size))])
        gradients = rows.dense()
        for _ in range(2):
            wanted = gradients @ hessian.apply(gradients.T)
            np.testing.assert_allclose(hessian.form(rows).matrix, wanted, rtol=1e-10, atol=1e-10)


def test_only_products_with_something_new_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = [0]

    def counting(lefts: list[np.ndarray], rights: list[np.ndarray]) -> list[list[float]]:
        computed[0] += len(lefts) * len(rights)
        return inner_products(lefts, rights)  # type: ignore[return-value]

    monkeypatch.setattr(products, "inner_products", counting)
    generator = np.random.default_rng(0)
    hessian, vectors = LimitedMemory(30, pairs=5), list(generator.standard_normal((4, 30)))
    learn(hessian, 30, 5)

    def cost(rows: list[np.ndarray]) -> int:
        computed[0] = 0
        hessian.form(Rows(rows))
        return computed[0]

    assert cost(vectors) == 4 * 10 + 4 * 4
    assert cost(vectors) == 0
    assert cost([*vectors[1:], generator.standard_normal(30)]) == 10 + 4
    learn(hessian, 30, 1, seed=9)
    vectors.append(vectors.pop(0))
    assert cost(vectors) == (3 * 2) + (10 + 4)  # one row is back and counts as new; the others need the new pair only


def test_rows_at_the_address_of_rows_that_are_gone() -> None:
    """What is remembered of a row must not be used for another one that has been given its memory."""
    generator = np.random.default_rng(0)
    hessian = LimitedMemory(1000, pairs=2)
    learn(hessian, 1000, 2)
    for _ in range(20):
        gradients = generator.standard_normal((2, 1000))
        rows = [np.array(gradients[0]), np.array(gradients[1])]
        np.testing.assert_allclose(
            hessian.form(Rows(rows)).matrix, gradients @ hessian.apply(gradients.T), rtol=1e-9, atol=1e-9
        )
        del rows


@pytest.mark.parametrize("initial", [False, True], ids=["apart", "added up"])
@pytest.mark.parametrize(("size", "updates"), [(101, 12), (300, 12), (300, 74), (300, 75), (300, 90)])
def test_a_triangle_or_what_was_learnt_is_the_whole_matrix(size: int, updates: int, initial: bool) -> None:
    """The corrections of 300 variables are added up at the 75th; with an initial matrix at once."""
    triangle, whole = FullMemory(size, np.eye(size) if initial else None), FullMemory(size, np.eye(size))
    whole._triangle = False
    for hessian in (triangle, whole):
        learn(hessian, size, updates)
    assert (triangle._corrections is not None) == (size == 300 and updates < 75 and not initial)
    np.testing.assert_allclose(triangle.matrix, whole.matrix, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(triangle.matrix, triangle.matrix.T)
    generator = np.random.default_rng(2)
    for columns in (
        generator.standard_normal(size),
        generator.standard_normal((size, 3)),
        generator.standard_normal((20, size)).T,
    ):
        np.testing.assert_allclose(triangle.apply(columns), whole.apply(columns), rtol=1e-9, atol=1e-9)
    for threshold in (3.0, 1e12):
        found, wanted = (each.regularized(threshold, lower_large=False).matrix for each in (triangle, whole))
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
    other = FullMemory(size)
    other.restore({name: np.array(value) for name, value in triangle.arrays().items()})
    for hessian in (triangle, other):
        learn(hessian, size, 2, seed=5)
    np.testing.assert_array_equal(triangle.matrix, other.matrix)


@pytest.mark.parametrize("updates", [0, 20, 80])
def test_rows_of_zeros_make_no_difference(updates: int) -> None:
    """Rows that are mostly 0 are multiplied without their zeros, whatever form the matrix has."""
    size, generator = 300, np.random.default_rng(4)
    hessian = FullMemory(size)
    learn(hessian, size, updates)
    rows = np.eye(size)[:90] * generator.standard_normal(size) + np.eye(size, k=3)[:90]
    form = hessian.form(rows)
    np.testing.assert_allclose(form.matrix, rows @ hessian.matrix @ rows.T, rtol=1e-9, atol=1e-11)
    weights = generator.standard_normal(90)
    np.testing.assert_allclose(form.step(weights), hessian.matrix @ (weights @ rows), rtol=1e-9, atol=1e-10)


def test_the_pairs_are_restored_slot_by_slot() -> None:
    """Also into a larger memory, and the last of them into a smaller one."""
    given = LimitedMemory(12, pairs=4)
    learn(given, 12, 7)
    arrays = {name: np.array(value) for name, value in given.arrays().items()}
    assert arrays["order"].tolist() == [3, 0, 1, 2]
    same, larger, smaller = (LimitedMemory(12, pairs=pairs) for pairs in (4, 6, 2))
    for each in (same, larger, smaller):
        each.restore(arrays)
    vector = np.arange(12.0)
    np.testing.assert_array_equal(same.apply(vector), given.apply(vector))
    np.testing.assert_array_equal(larger.apply(vector), given.apply(vector))
    np.testing.assert_array_equal(smaller.steps, given.steps[-2:])
    np.testing.assert_array_equal(smaller.changes, given.changes[-2:])
    for each in (same, given):
        learn(each, 12, 1, seed=8)
    np.testing.assert_array_equal(same.apply(vector), given.apply(vector))
    plain = LimitedMemory(12, pairs=4)
    plain.restore({"steps": given.steps, "changes": given.changes, "gamma": given.gamma, "updates": 8})
    np.testing.assert_allclose(plain.apply(vector), given.apply(vector), rtol=1e-12)
    arrays["order"] = np.array([0, 0, 1, 2])
    with pytest.raises(ValueError, match="order"):
        same.restore(arrays)


@pytest.mark.parametrize("kind", ["full", "round"])
def test_a_form_extended_row_by_row_is_that_of_all_rows(kind: str) -> None:
    """Rows come at the end or in between, the oldest go; after an update everything is computed anew."""
    generator = np.random.default_rng(3)
    size = 20
    root = generator.standard_normal((size, size))
    hessian = FullMemory(size, root @ root.T + np.eye(size)) if kind == "full" else LimitedMemory(size, pairs=2, gamma=0.3)
    rows, keys = list(generator.standard_normal((70, size))), list(range(70))
    computed = 0
    for number in range(100, 130):
        place = int(generator.integers(1, len(rows)))
        rows.insert(place, generator.standard_normal(size))
        keys.insert(place, -number)
        if number % 3 == 0:
            del rows[1], keys[1]
        if number == 115 and kind == "full":
            s = generator.standard_normal(size)
            hessian.update(curvature_pair(s, s * generator.uniform(0.5, 2.0, size), None, 0.0))
        matrix = np.array(rows)
        before = getattr(hessian, "_last" if kind == "full" else "_plain")
        form = hessian.form(matrix, np.array(keys))
        computed += before is None or before.extended(matrix, np.array(keys), hessian.apply) is None
        expected = hessian.form(matrix)
        np.testing.assert_allclose(form.matrix, expected.matrix, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(form.matrix, form.matrix.T)
        weights = generator.standard_normal(len(rows) - 2)
        np.testing.assert_allclose(form.step(weights, first=2), expected.step(weights, first=2), rtol=1e-9, atol=1e-9)
    assert computed == (2 if kind == "full" else 1)


@pytest.mark.parametrize("size", [90, 250], ids=["whole", "triangle"])
def test_rows_that_are_mostly_zero_give_the_same_form(size: int) -> None:
    generator = np.random.default_rng(5)
    hessian = FullMemory(size)
    learn(hessian, size, 5)
    units = np.eye(size)
    rows = np.vstack([generator.standard_normal((2, size)), units[generator.permutation(size)], -units[: size - 2]])
    rows = rows if size > 100 else np.vstack([rows, units])
    assert sparse_rows(rows) is not None and sparse_rows(rows[:2]) is None
    form, dense = hessian.form(rows), hessian.apply(np.eye(size))
    np.testing.assert_allclose(form.matrix, rows @ dense @ rows.T, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(form.matrix, form.matrix.T)
    weights = generator.standard_normal(len(rows))
    np.testing.assert_allclose(form.step(weights), dense @ (weights @ rows), rtol=1e-9, atol=1e-10)


def test_a_form_of_many_rows_is_extended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, size, count = np.random.default_rng(6), 260, 450
    hessian = FullMemory(size)
    learn(hessian, size, 3)
    rows = generator.standard_normal((count + 1, size))
    hessian.form(rows[:count], np.arange(count))
    columns: list[int] = []
    apply = hessian.apply
    monkeypatch.setattr(hessian, "apply", lambda matrix: (columns.append(matrix.shape[1]), apply(matrix))[1])
    form = hessian.form(rows, np.arange(count + 1))
    assert columns == [1]  # the new one alone was multiplied
    np.testing.assert_allclose(form.matrix, rows @ apply(rows.T), rtol=1e-9, atol=1e-9)
