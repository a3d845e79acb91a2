"""The active-set method: its answers against the other side of the program, which proves them optimal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsmooth.qp import MIN_WARM_START_ENTRIES, Product, Program, QPSolver
from nonsmooth.qp.active_set import active_set
from nonsmooth.qp.factor import Factor


@dataclass(frozen=True)
class Piecewise:
    """max_k (g_k·d − e_k) + ρ Σ_i (c_i + a_i·d)₊ + ½|d|², of which a program is the dual; equalities have |·| for (·)₊."""

    slopes: np.ndarray
    errors: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    weight: float
    equalities: int = 0

    @classmethod
    def random(cls, seed: int, *, size: int, cuts: int, rows: int, equalities: int = 0, weight: float = 3.0) -> Piecewise:
        draw = np.random.default_rng(seed)
        lengths = 10.0 ** draw.uniform(-1, 1, (cuts + rows, 1))
        vectors = draw.standard_normal((cuts + rows, size)) * lengths
        return cls(vectors[:cuts], draw.exponential(size=cuts), vectors[cuts:], draw.standard_normal(rows), weight, equalities)

    def at(self, d: np.ndarray) -> float:
        values = self.values + self.rows @ d
        violation = np.abs(values[: self.equalities]).sum() + np.maximum(values[self.equalities :], 0.0).sum()
        highest = (self.slopes @ d - self.errors).max() if len(self.errors) else 0.0
        return float(highest + self.weight * violation + 0.5 * d @ d)

    def program(self, *, formed: bool = True) -> Program:
        vectors = np.concatenate([self.slopes, self.rows])
        count, total = len(self.errors), len(vectors)
        lower, upper = np.zeros(total), np.full(total, self.weight)
        upper[:count] = 1.0
        lower[count : count + self.equalities] = -self.weight
        matrix = vectors @ vectors.T if formed else Product(vectors, vectors)
        return Program(matrix, np.concatenate([self.errors, -self.values]), lower, upper, count)

    def gap(self, y: np.ndarray) -> float:
        """How far y may be from optimal at most, relative to the value: no d gives less than −(the program's optimum)."""
        value = self.at(-(y @ np.concatenate([self.slopes, self.rows])))
        return (value + self.program().value(y)) / (1.0 + abs(value))


def corner(program: Program) -> np.ndarray:
    y = np.clip(np.zeros(program.size), program.lower, program.upper)
    y[: min(1, program.simplex)] = 1.0
    return y


def inside(program: Program, y: np.ndarray) -> bool:
    whole = not program.simplex or abs(y[: program.simplex].sum() - 1.0) < 1e-12
    return bool((y >= program.lower).all() and (y <= program.upper).all() and whole)


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 10**6), size=st.integers(1, 12), cuts=st.integers(0, 15), rows=st.integers(1, 40),
    equalities=st.integers(0, 3), weight=st.sampled_from([1e-3, 0.5, 10.0, 1e4]), formed=st.booleans(),
)  # fmt: skip
def test_answers_are_proven_by_the_other_side(
    seed: int, size: int, cuts: int, rows: int, equalities: int, weight: float, formed: bool
) -> None:
    piecewise = Piecewise.random(seed, size=size, cuts=cuts, rows=rows, equalities=min(equalities, rows), weight=weight)
    program = piecewise.program(formed=formed)
    y = active_set(program, corner(program), rounds=20 + 10 * program.size)
    assert inside(program, y)
    assert program.residual(y) <= 1e-8
    assert piecewise.gap(y) <= 1e-9 * max(1.0, weight)  # what is left of a violation counts that often


@pytest.mark.parametrize(("cuts", "rows"), [(1, 400), (60, 500), (120, 0), (0, 300)])
@pytest.mark.parametrize("weight", [0.01, 1.0, 1e3])
def test_many_more_rows_than_variables(cuts: int, rows: int, weight: float) -> None:
    piecewise = Piecewise.random(cuts + rows, size=30, cuts=cuts, rows=rows, weight=weight, equalities=min(rows, 4))
    program = piecewise.program(formed=False)
    y = active_set(program, corner(program), rounds=10 * program.size)
    assert inside(program, y) and program.residual(y) <= 1e-9 and piecewise.gap(y) <= 1e-10


def test_a_product_and_its_matrix_are_the_same_program() -> None:
    piecewise = Piecewise.random(3, size=9, cuts=7, rows=60)
    formed, unformed = piecewise.program(), piecewise.program(formed=False)
    y = np.abs(np.random.default_rng(0).standard_normal(67))
    some = np.array([3, 8, 50])
    np.testing.assert_allclose(unformed.matrix @ y, formed.matrix @ y, rtol=1e-12)
    np.testing.assert_allclose(unformed.block(some, some[:2]), formed.block(some, some[:2]), rtol=1e-12)
    np.testing.assert_allclose(unformed.combined(some, y[:3]), formed.combined(some, y[:3]), rtol=1e-12)
    np.testing.assert_allclose(unformed.scale, formed.scale, rtol=1e-12)
    np.testing.assert_allclose(unformed.dense, formed.dense, rtol=1e-12, atol=1e-12)
    assert unformed.rounding(y) >= formed.rounding(y)


@pytest.mark.parametrize("seed", range(5))
def test_every_row_many_times_over(seed: int) -> None:
    """Degenerate: the multipliers are not unique, and more rows are active than there are variables."""
    few = Piecewise.random(seed, size=4, cuts=3, rows=6)
    often = Piecewise(
        np.tile(few.slopes, (4, 1)), np.tile(few.errors, 4), np.tile(few.rows, (8, 1)), np.tile(few.values, 8), few.weight / 8
    )
    one, many = few.program(), often.program(formed=False)
    expected = active_set(one, corner(one), rounds=200)
    y = active_set(many, corner(many), rounds=1000)
    assert many.residual(y) <= 1e-9 and often.gap(y) <= 1e-10
    together = expected @ np.concatenate([few.slopes, few.rows])
    np.testing.assert_allclose(y @ np.concatenate([often.slopes, often.rows]), together, atol=1e-7)


def test_rows_that_all_pass_through_one_point() -> None:
    draw = np.random.default_rng(1)
    rows = draw.standard_normal((200, 5))
    point = draw.standard_normal(5)
    piecewise = Piecewise(draw.standard_normal((1, 5)), np.zeros(1), rows, -rows @ point, 100.0)
    program = piecewise.program(formed=False)
    y = active_set(program, corner(program), rounds=3000)
    assert program.residual(y) <= 1e-9 and piecewise.gap(y) <= 1e-9


def test_rows_that_contradict_each_other_end_at_their_limits() -> None:
    """x ≥ 1 and x ≤ −1, each a hundred times: whatever is done, the violation stays."""
    rows = np.concatenate([-np.ones((100, 1)), np.ones((100, 1))])
    piecewise = Piecewise(np.array([[0.5]]), np.zeros(1), rows, np.ones(200), 7.0)
    program = piecewise.program(formed=False)
    y = active_set(program, corner(program), rounds=2000)
    assert piecewise.gap(y) <= 1e-12
    assert (y[1:] == 7.0).sum() > 150


@pytest.mark.parametrize("formed", [True, False])
def test_gradients_that_vanish(formed: bool) -> None:
    rows = np.zeros((6, 3))
    rows[0] = [1.0, 2.0, -1.0]
    piecewise = Piecewise(np.zeros((2, 3)), np.array([0.0, 1.0]), rows, np.array([1.0, 1.0, -1.0, 0.0, 2.0, -2.0]), 4.0)
    program = piecewise.program(formed=formed)
    y = active_set(program, corner(program), rounds=100)
    np.testing.assert_allclose(y, [1.0, 0.0, 1.0 / 6.0, 4.0, 0.0, 0.0, 4.0, 0.0], atol=1e-12)


def test_gradients_that_cancel() -> None:
    """At a kink the combination is 0, so that the matrix of the free entries is singular along the answer itself."""
    draw = np.random.default_rng(4)
    slopes = draw.standard_normal((6, 5))
    slopes[-1] = -slopes[:-1].sum(axis=0)
    piecewise = Piecewise(slopes, np.zeros(6), np.zeros((0, 5)), np.zeros(0), 1.0)
    program = piecewise.program()
    y = active_set(program, corner(program), rounds=100)
    np.testing.assert_allclose(y, np.full(6, 1.0 / 6.0), atol=1e-12)


def test_an_answer_that_is_nothing_but_rounding() -> None:
    """One gradient vanishes: the optimum is 0, and what is left of the others is not worth a digit."""
    slopes = np.array([[0.0, 1.0], [0.0, 0.0], [3.0, -2.0]])
    program = Piecewise(slopes, np.array([0.0, 0.0, 1.0]), np.array([[2.0, 1.0]]), np.zeros(1), 0.2).program()
    assert program.residual(np.array([1e-28, 1.0, 0.0, 1e-29])) == 0.0
    assert program.residual(np.array([1e-5, 1.0 - 1e-5, 0.0, 0.0])) > 1e-7


def test_lengths_of_very_different_size() -> None:
    piecewise = Piecewise.random(6, size=8, cuts=10, rows=50)
    factors = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 50)
    scaled = Piecewise(piecewise.slopes, piecewise.errors, piecewise.rows * factors[:, None], piecewise.values * factors, 1.0)
    program = scaled.program()
    y = active_set(program, corner(program), rounds=1000)
    assert program.residual(y) <= 1e-7 and scaled.gap(y) <= 1e-7


@pytest.mark.parametrize(
    "matrix", [np.full((3, 3), np.nan), np.diag([1.0, -1.0, 2.0]), np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])]
)
def test_a_matrix_of_no_convex_program_does_no_harm(matrix: np.ndarray) -> None:
    program = Program(matrix, np.array([-1.0, 0.5, 0.1]), -np.ones(3), np.ones(3))
    assert inside(program, active_set(program, np.zeros(3), rounds=100))


class Changes:
    """How often an entry was let go or held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        append, delete = Factor.append, Factor.delete

        def counted_append(factor: Factor, column: np.ndarray, diagonal: float) -> None:
            self.count += 1
            append(factor, column, diagonal)

        def counted_delete(factor: Factor, position: int) -> bool:
            self.count += 1
            return delete(factor, position)

        monkeypatch.setattr(Factor, "append", counted_append)
        monkeypatch.setattr(Factor, "delete", counted_delete)


def test_nothing_changes_where_it_begins_at_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Piecewise.random(9, size=20, cuts=20, rows=200).program(formed=False)
    answer = active_set(program, corner(program), rounds=2000)
    changes = Changes(monkeypatch)
    again = active_set(program, answer, rounds=2000)
    assert changes.count == 0
    np.testing.assert_allclose(again, answer, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_few_things_change_where_it_begins_nearby(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    piecewise = Piecewise.random(seed, size=20, cuts=20, rows=200)
    program = piecewise.program(formed=False)
    answer = active_set(program, corner(program), rounds=2000)
    moved = Piecewise(piecewise.slopes, piecewise.errors, piecewise.rows, piecewise.values + 1e-4, piecewise.weight)
    changes = Changes(monkeypatch)
    y = active_set(moved.program(formed=False), answer, rounds=2000)
    assert moved.gap(y) <= 1e-10
    assert changes.count <= 10


def test_large_programs_need_no_other_solver_and_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Product, "dense", lambda self: pytest.fail("the matrix was formed"))
    solver = QPSolver()
    for seed in range(3):
        piecewise = Piecewise.random(seed, size=15, cuts=1 + 10 * seed, rows=2 * MIN_WARM_START_ENTRIES)
        given = piecewise.program(formed=False)
        solution = solver.session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper)
        assert solution.trusted
        assert piecewise.at(-(solution.y @ np.concatenate([piecewise.slopes, piecewise.rows]))) == pytest.approx(
            -(0.5 * solution.y @ (given.matrix @ solution.y) + given.linear @ solution.y), rel=1e-9
        )
    assert solver.counts.second_solver == 0 and solver.counts.failed == 0


def test_a_small_product_is_solved_as_well() -> None:
    piecewise = Piecewise.random(2, size=3, cuts=4, rows=20)
    given = piecewise.program(formed=False)
    solution = QPSolver().session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper)
    assert solution.trusted and piecewise.gap(solution.y) <= 1e-7
