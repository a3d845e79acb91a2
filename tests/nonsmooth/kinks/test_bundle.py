"""Gradients kept from earlier points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonsmooth.arrays.rows import CHUNK_SIZE, Rows
from nonsmooth.arrays.window import Window
from nonsmooth.evaluate import Trial
from nonsmooth.kinks import linearizations as linearizations
from nonsmooth.kinks.bundle import Bundle, default_capacity, own_cut
from nonsmooth.kinks.pieces import ConstraintPieces


def convex(x: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest of two cones and a parabola, with a gradient."""
    a, b = np.array([1.0, -2.0]), np.array([0.5, 0.5])
    pieces = [
        (np.abs(x - a).sum(), np.sign(x - a)),
        (float((x - b) @ (x - b)), 2 * (x - b)),
        (3 * abs(x[0] + x[1]), 3 * np.sign(x[0] + x[1]) * np.ones(2)),
    ]
    return max(pieces, key=lambda piece: piece[0])


def trial(x: np.ndarray) -> Trial:
    value, gradient = convex(x)
    inequality, row = convex(x + 0.3)
    return Trial.stored(x, value, np.array([inequality - 2.0]), 0, gradient, row[None])


def points(count: int, seed: int = 0, spread: float = 2.0) -> np.ndarray:
    return spread * np.random.default_rng(seed).standard_normal((count, 2))


@pytest.mark.parametrize("seed", range(5))
def test_cuts_lie_below_a_convex_function(seed: int) -> None:
    bundle = Bundle(2, 50)
    for x in points(20, seed):
        bundle.add(trial(x))
    at = trial(points(1, seed + 100)[0])
    cuts = bundle.cuts(at)
    assert cuts.slopes.shape == (21, 2)
    assert (cuts.errors >= 0).all() and cuts.errors[0] == 0.0
    for y in points(30, seed + 200):
        model = at.f + (cuts.slopes @ (y - at.x) - cuts.errors).max()
        assert model <= convex(y)[0] + 1e-12
    np.testing.assert_array_equal(cuts.slopes[0], at.gradient)


def test_a_cut_is_the_linearization_where_it_was_made() -> None:
    """At its own point a cut has the value of the function, up to what its distance costs."""
    bundle = Bundle(2, 50)
    x = np.array([0.2, 0.1])
    bundle.add(trial(x))
    at = trial(x + 1e-3)
    cuts = bundle.cuts(at)
    reached = at.f + cuts.slopes[1] @ (x - at.x) - cuts.errors[1]
    assert reached == pytest.approx(convex(x)[0], abs=1e-8)


def test_far_cuts_of_a_nonconvex_function_still_lie_below_its_value() -> None:
    bundle = Bundle(1, 5)
    for x in (-2.0, 1.5, 3.0):
        bundle.add(Trial.stored(np.array([x]), -(x**2), np.zeros(0), 0, np.array([-2 * x]), np.zeros((0, 1))))
    at = Trial.stored(np.zeros(1), 0.0, np.zeros(0), 0, np.zeros(1), np.zeros((0, 1)))
    assert (bundle.cuts(at).errors[1:] > 0).all()


def test_the_oldest_goes_when_it_is_full() -> None:
    bundle = Bundle(2, 3)
    given = points(5)
    for x in given:
        bundle.add(trial(x))
    assert len(bundle) == 3
    np.testing.assert_array_equal(bundle.arrays()["points"], given[2:])
    bundle.clear()
    assert len(bundle) == 0 and bundle.cuts(trial(given[0])).slopes.shape == (1, 2)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_lie_below_a_convex_constraint(seed: int) -> None:
    cuts = ConstraintPieces(2, 30)
    for x in points(10, seed):
        cuts.add(trial(x), 0)
    at = trial(points(1, seed + 50)[0])
    rows = cuts.at(at)
    assert (rows.values <= at.c[0]).all() and (rows.index == 0).all()
    for y in points(20, seed + 70):
        assert (rows.values + rows.rows @ (y - at.x)).max() <= trial(y).c[0] + 1e-12


def test_arrays_restore_both() -> None:
    bundle, cuts = Bundle(2, 4), ConstraintPieces(2, 4)
    for x in points(6):
        bundle.add(trial(x))
        cuts.add(trial(x), 0)
    other, others = Bundle(2, 4), ConstraintPieces(2, 4)
    other.restore(bundle.arrays())
    others.restore(cuts.arrays())
    at = trial(np.array([0.1, 0.2]))
    for each in (bundle, other):
        each.add(at)
    np.testing.assert_array_equal(bundle.cuts(at).errors, other.cuts(at).errors)
    np.testing.assert_array_equal(bundle.cuts(at).slopes, other.cuts(at).slopes)
    np.testing.assert_array_equal(cuts.at(at).values, others.at(at).values)
    assert len(others) == 4


def test_the_cut_of_a_point_alone() -> None:
    at = trial(np.array([0.1, 0.2]))
    cut = own_cut(at)
    assert cut.errors.tolist() == [0.0]
    np.testing.assert_array_equal(cut.slopes, at.gradient[None])


def long_trial(generator: np.random.Generator, size: int) -> Trial:
    x, gradient, row = generator.standard_normal((3, size))
    return Trial.stored(x, float(generator.standard_normal()), generator.standard_normal(1), 1, gradient, row[None])


def test_long_vectors_are_kept_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """By reference, and with the same cuts as those of short ones, from one point after another."""
    size, generator = CHUNK_SIZE + 100, np.random.default_rng(0)
    bundle, cuts, restored = Bundle(size, 4), ConstraintPieces(size, 4), Bundle(size, 4)
    monkeypatch.setattr(linearizations, "MAX_DENSE_VARIABLES", size)
    other, others = Bundle(size, 4), ConstraintPieces(size, 4)
    at = long_trial(generator, size)
    for number in range(7):
        added = long_trial(generator, size)
        for each, constraints in ((bundle, cuts), (other, others)):
            each.add(added, 0.1 * number)
            constraints.add(added, 0)
        if number == 5:
            at = long_trial(generator, size)
        long, short = bundle.cuts(at), other.cuts(at)
        assert isinstance(long.slopes, Rows) and np.shares_memory(long.slopes.blocks[-1], added.gradient)
        np.testing.assert_allclose(long.errors, short.errors, rtol=1e-11)
        np.testing.assert_array_equal(
            long.slopes.dense(), np.asarray(short.slopes.dense() if isinstance(short.slopes, Rows) else short.slopes)
        )
        np.testing.assert_allclose(cuts.at(at).values, others.at(at).values, rtol=1e-11)
    np.testing.assert_array_equal(bundle.arrays()["slopes"], other.arrays()["slopes"])
    restored.restore(bundle.arrays())
    np.testing.assert_array_equal(restored.cuts(at).errors, bundle.cuts(at).errors)
    bundle.clear()
    assert len(bundle) == 0 and len(bundle.cuts(at).errors) == 1


def test_a_kept_constraint_does_not_hold_the_others() -> None:
    cuts, size = ConstraintPieces(5000, 3), 5000
    jacobian = np.ones((20, size))
    cuts.add(Trial.stored(np.zeros(size), 0.0, np.ones(20), 0, np.zeros(size), jacobian), 7)
    assert not np.shares_memory(cuts._linearizations.rows.dense(), jacobian)
    assert all(block.base is None for block in cuts._linearizations.rows.blocks)


def test_capacity_follows_the_size() -> None:
    assert [default_capacity(size) for size in (1, 20, 95)] == [13, 70, 250]  # as many as a kink can need
    assert [default_capacity(size) for size in (1000, 2000, 2001, 40_000, 10**5, 10**6)] == [40, 10, 30, 30, 12, 10]
    sizes = [10**power for power in range(2, 8)]
    found = [default_capacity(size) for size in sizes]
    assert found == sorted(found, reverse=True) and found[-1] == 10
    assert all(10 < count * size <= 2e8 for count, size in zip(found, sizes, strict=True))


@given(st.integers(1, 12), st.integers(0, 60), st.integers(0, 3))
def test_a_window_shows_the_last_of_them(capacity: int, count: int, width: int) -> None:
    """And what was shown before stays as it was."""
    window, everything, shown = Window(np.empty((0, width)), capacity), [], []
    for number in range(count):
        everything.append(np.full(width, float(number)))
        window.add(everything[-1])
        shown.append((window.entries, np.array(everything[-capacity:])))
        np.testing.assert_array_equal(window.entries, shown[-1][1])
    for kept, wanted in shown:
        np.testing.assert_array_equal(kept, wanted)
    assert len(window.entries) == min(count, capacity)


def test_a_value_that_is_an_integer() -> None:
    bundle = Bundle(2, 5)
    for x in (0.5, 1.0, 2.0):
        bundle.add(Trial.stored(np.full(2, x), x, np.zeros(0), 0, np.array([1.0, 0.0]), np.zeros((0, 2))))
    at = Trial.stored(np.zeros(2), 0, np.zeros(0), 0, np.ones(2), np.zeros((0, 2)))
    np.testing.assert_allclose(bundle.cuts(at).errors, [0.0, 0.0005, 0.002, 0.008])


@pytest.mark.parametrize("seed", range(3))
def test_no_cut_of_a_convex_function_is_refuted(seed: int) -> None:
    bundle = Bundle(2, 50)
    for x in points(20, seed):
        bundle.add(trial(x))
    bundle.drop_refuted(trial(points(1, seed + 100)[0]), 1e-12)
    assert len(bundle) == 20


@pytest.mark.parametrize("size", [2, 2001], ids=["matrices", "vectors"])
def test_cuts_above_the_function_are_dropped(size: int) -> None:
    bundle = Bundle(size, 4)
    values = (5.0, 1.0, 4.0, 0.5, 3.0)  # of constant functions; the first is gone before
    for index, value in enumerate(values):
        at = Trial.stored(np.full(size, float(index)), value, np.zeros(0), 0, np.zeros(size), np.zeros((0, size)))
        bundle.add(at, weight=value)
    keys = bundle.cuts(at).keys.copy()
    here = Trial.stored(np.full(size, 9.0), 2.0, np.zeros(0), 0, np.zeros(size), np.zeros((0, size)))
    bundle.drop_refuted(here, 1.5)
    cuts = bundle.cuts(here)
    np.testing.assert_array_equal(bundle.arrays()["values"], [1.0, 0.5, 3.0])
    np.testing.assert_array_equal(bundle.arrays()["points"][:, 0], [1.0, 3.0, 4.0])
    np.testing.assert_array_equal(bundle.weights, [1.0, 0.5, 3.0])
    np.testing.assert_array_equal(cuts.keys, keys[[0, 2, 3]])  # they are still known by their numbers
    np.testing.assert_allclose(cuts.errors[1:], np.maximum([1.0, 1.5, 1.0], 1e-3 * size * np.array([64.0, 36.0, 25.0])))
    if cuts.table is not None:
        assert cuts.table.addresses[0] == cuts.table.points.ctypes.data
    bundle.add(at)
    bundle.add(at)
    assert len(bundle) == 4
