"""The span of the gradients of equalities."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.certify.span import Span


@pytest.mark.parametrize(("count", "size", "rank"), [(3, 10, 3), (8, 10, 4), (15, 10, 10), (1, 1, 1), (6, 2000, 6)])
def test_a_vector_is_its_part_outside_and_a_combination_of_rows(count: int, size: int, rank: int) -> None:
    generator = np.random.default_rng(count)
    rows = generator.standard_normal((count, rank)) @ generator.standard_normal((rank, size))
    rows *= 10.0 ** generator.uniform(-4, 4, (count, 1))
    vector = generator.standard_normal(size)
    span = Span(rows)
    outside = span.orthogonal_part(vector)
    multipliers = span.multipliers(vector)
    assert np.abs(rows @ outside / np.linalg.norm(rows, axis=1)).max() < 1e-11 * np.linalg.norm(vector)
    assert outside + multipliers @ rows == pytest.approx(vector, abs=1e-8)
    assert int((multipliers != 0).sum()) == min(rank, size)
    nearest = np.linalg.lstsq(rows.T / np.linalg.norm(rows, axis=1), vector, rcond=1e-12)[0]
    shortest = vector - nearest @ (rows / np.linalg.norm(rows, axis=1)[:, None])
    assert outside == pytest.approx(shortest, abs=1e-8)


def test_rows_that_are_left_out_take_nothing_away() -> None:
    span = Span(np.eye(3), excluding={1})
    vector = np.array([1.0, 2.0, 3.0])
    assert span.orthogonal_part(vector).tolist() == [0.0, 2.0, 0.0]
    assert span.multipliers(vector).tolist() == [1.0, 0.0, 3.0]


def test_no_rows_and_rows_without_length() -> None:
    vector = np.array([1.0, 2.0])
    assert Span(np.zeros((0, 2))).orthogonal_part(vector) is vector
    empty = Span(np.zeros((2, 2)))
    assert empty.orthogonal_part(vector) is vector and empty.multipliers(vector).tolist() == [0.0, 0.0]


def test_rounding_is_not_left() -> None:
    row = np.random.default_rng(0).standard_normal(20)
    span = Span(row[None])
    assert span.orthogonal_part(1e8 * row, drop_rounding_errors=True).tolist() == [0.0] * 20
    assert 0 < np.abs(span.orthogonal_part(1e8 * row + 1e-4)).max() < 1e-3  # where it is not asked for, nothing is lost
    assert np.isnan(span.orthogonal_part(np.full(20, np.nan), drop_rounding_errors=True)).all()
    assert not np.isfinite(span.orthogonal_part(row * np.inf, drop_rounding_errors=True)).any()
    assert np.abs(span.orthogonal_part(1e200 * np.arange(20.0), drop_rounding_errors=True)).max() > 1e199


def test_what_is_not_finite_is_said() -> None:
    rows = np.array([[np.nan, 0.0], [0.0, 1.0]])
    assert not Span(rows).finite
    assert Span(rows, excluding={0}).finite and Span(rows, excluding={0}).orthogonal_part(np.ones(2)).tolist() == [1.0, 0.0]
