"""Rows of gradients that are not copied together."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.arrays import rows as module
from nonsmooth.arrays.rows import CHUNK_SIZE, MAX_DENSE_VARIABLES, Rows, inner_products, stack, triangular_factor

SIZE = 2 * CHUNK_SIZE + 77
"""More than two pieces."""


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def some(generator: np.random.Generator) -> tuple[Rows, np.ndarray]:
    """Rows in blocks of one, of three and of none, and the same as one matrix."""
    first, several, last = (
        generator.standard_normal(SIZE),
        generator.standard_normal((3, SIZE)),
        generator.standard_normal(SIZE),
    )
    return Rows([first, several, np.zeros((0, SIZE)), last[None]]), np.vstack([first, several, last])


def test_products_and_combinations(generator: np.random.Generator) -> None:
    rows, matrix = some(generator)
    vector, weights = generator.standard_normal(SIZE), generator.standard_normal(5)
    assert len(rows) == 5 and len(rows.blocks) == 3
    np.testing.assert_array_equal(rows.dense(), matrix)
    np.testing.assert_allclose(rows @ vector, matrix @ vector, rtol=1e-12, atol=1e-10)
    for chosen in (weights, np.eye(5)[0], np.eye(5)[2], np.eye(5)[4], np.zeros(5)):
        np.testing.assert_allclose(chosen @ rows, chosen @ matrix, rtol=1e-12, atol=1e-12)


def test_nothing_is_copied(generator: np.random.Generator) -> None:
    gradient, jacobian = generator.standard_normal((1, SIZE)), generator.standard_normal((2, SIZE))
    rows = stack(Rows([gradient]), jacobian)
    assert isinstance(rows, Rows)
    for block, origin in zip(rows.blocks, (gradient, jacobian), strict=True):
        assert np.shares_memory(block, origin)


def test_small_rows_become_one_matrix(generator: np.random.Generator) -> None:
    parts = generator.standard_normal((1, MAX_DENSE_VARIABLES)), generator.standard_normal((2, MAX_DENSE_VARIABLES))
    np.testing.assert_array_equal(stack(*parts), np.concatenate(parts))
    assert isinstance(stack(generator.standard_normal((1, MAX_DENSE_VARIABLES + 1))), Rows)


def test_a_product_does_not_depend_on_what_it_is_computed_with(generator: np.random.Generator) -> None:
    """To the last bit: products are remembered, and a continued run has forgotten them."""
    vectors = list(generator.standard_normal((6, SIZE)))
    together = inner_products(vectors, vectors)
    for i, left in enumerate(vectors):
        for j, right in enumerate(vectors):
            assert together[i][j] == together[j][i] == inner_products([left], [right])[0][0]
            assert inner_products([left.copy()], [vectors[0], right])[0][1] == together[i][j]


def test_products_of_a_block_of_several_rows(generator: np.random.Generator) -> None:
    block, vectors = generator.standard_normal((3, 10)), list(generator.standard_normal((2, 10)))
    found = inner_products([block, vectors[0]], vectors)
    np.testing.assert_allclose(found[0], [block @ vector for vector in vectors])
    np.testing.assert_allclose(found[1], [vectors[0] @ vector for vector in vectors])


def test_the_factor_made_of_pieces(generator: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_SIZE", 7)
    matrix, last, lengths = generator.standard_normal((4, 50)), generator.standard_normal(4), np.array([1.0, 2.0, 0.5, 3.0])
    factor = triangular_factor(Rows([matrix[0], matrix[1:]]), last, lengths)
    system = np.vstack([matrix.T, last]) / lengths
    assert factor.shape == (4, 4)
    np.testing.assert_allclose(factor, np.triu(factor))
    np.testing.assert_allclose(factor.T @ factor, system.T @ system, rtol=1e-12)
