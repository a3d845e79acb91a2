"""Quadratic programs with balls: answers against the gap that bounds what is left, and against those known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from nonsmooth.qp import NO_BALL, BallProgram, OutOfTime, QPSolver, solve_with_balls


def random_program(seed: int) -> BallProgram:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 5, draw.integers(1, 12))
    simplex, box, rank = int(draw.integers(0, 4)), int(draw.integers(0, 8)), int(draw.integers(1, 30))
    before, total = simplex + box, simplex + box + int(sizes.sum())
    rows = draw.standard_normal((total, rank)) * 10.0 ** draw.uniform(-1, 1, (total, 1))
    linear = draw.standard_normal(total) * 10.0 ** draw.uniform(-2, 2)
    linear[:simplex] = np.abs(linear[:simplex])
    balls = np.concatenate([np.full(before, NO_BALL), np.repeat(np.arange(len(sizes)), sizes)])
    upper = 10.0 ** draw.uniform(-1, 1, total)
    upper[before:] = (10.0 ** draw.uniform(-1, 1, len(sizes)))[balls[before:]]
    lower = np.where(balls == NO_BALL, -upper * (draw.random(total) < 0.6), -upper)
    lower[:simplex], upper[:simplex] = 0.0, 1.0
    return BallProgram(rows @ rows.T, linear, lower, upper, balls, simplex)


@pytest.mark.parametrize("seed", range(100))
def test_answers_are_feasible_and_leave_no_gap(seed: int) -> None:
    program = random_program(seed)
    found = solve_with_balls(program)
    assert found.trusted and program.gap(found.y) <= 1e-9
    assert (program.lengths(found.y) <= program.radii * (1 + 1e-12)).all()
    box = program.boxed
    assert ((found.y >= program.lower) & (found.y <= program.upper))[box].all()
    if program.simplex:
        assert found.y[: program.simplex].sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_no_feasible_point_near_or_far_is_better(seed: int) -> None:
    program, draw = random_program(seed), np.random.default_rng(seed)
    y = solve_with_balls(program).y

    def value(at: np.ndarray) -> float:
        return float(0.5 * at @ program.matrix @ at + program.linear @ at)

    for _ in range(200):
        other = y + draw.standard_normal(len(y)) * 10.0 ** draw.uniform(-6, 1)
        other[: program.simplex] = np.maximum(other[: program.simplex], 1e-9)
        assert value(program.feasible(other)) >= value(y) - 1e-10 * (1 + abs(value(y)))


def test_entries_at_bounds_are_exactly_there() -> None:
    program = BallProgram(
        np.eye(4), np.array([-5.0, 0.3, -3.0, -4.0]), np.array([-1.0, -1.0, -2.0, -2.0]), np.array([1.0, 1.0, 2.0, 2.0]),
        np.array([NO_BALL, NO_BALL, 0, 0]),
    )  # fmt: skip
    np.testing.assert_allclose(solve_with_balls(program).y, [1.0, -0.3, 1.2, 1.6], rtol=1e-14)
    assert solve_with_balls(program).y[0] == 1.0


def test_unbounded_entries() -> None:
    program = BallProgram(
        np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), np.array([-1.0, -8.0, -3.0]),
        np.array([-1.0, -np.inf, 0.0]), np.array([1.0, np.inf, np.inf]), np.array([0, NO_BALL, NO_BALL]),
    )  # fmt: skip
    np.testing.assert_allclose(solve_with_balls(program).y, [-1.0, 4.5, 3.0], rtol=1e-10)


def test_a_session_takes_balls() -> None:
    program, solver = random_program(3), QPSolver()
    session = solver.session(program.matrix, program.simplex, program.balls)
    np.testing.assert_array_equal(session.solve(program.linear, program.lower, program.upper).y, solve_with_balls(program).y)
    assert solver.counts.solved == 1 and solver.counts.failed == 0


def test_a_deadline_ends_a_long_program() -> None:
    with pytest.raises(OutOfTime):
        solve_with_balls(random_program(3), deadline=0.0)
