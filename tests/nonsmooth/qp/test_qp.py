"""The quadratic programs against answers found in other ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from scipy.optimize import minimize as scipy_minimize

from nonsmooth import QPError, minimize
from nonsmooth.qp import Program, QPSolver, available
from nonsmooth.qp.active_set import active_set
from nonsmooth.qp.backends import MODULES, ONE_SHOT, Daqp, is_installed
from nonsmooth.qp.solver import closed_form

INSTALLED = [name for name in MODULES if is_installed(name)]
BACKENDS = [*INSTALLED, "native"]
NOT_INSTALLED = [name for name in MODULES if not is_installed(name)]


def program(generator: np.random.Generator, size: int, simplex: int, *, rank: int | None = None) -> Program:
    """A program as the solver makes them: a Gram matrix, a simplex first and a box after it."""
    vectors = generator.standard_normal((size, rank or size + 2)) * 10.0 ** generator.uniform(-1, 1, (size, 1))
    lower, upper = np.zeros(size), np.full(size, 10.0 ** generator.uniform(-1, 2))
    upper[:simplex] = 1.0
    if size > simplex:
        lower[-1] = -upper[-1]  # an equality
    return Program(vectors @ vectors.T, generator.standard_normal(size), lower, upper, simplex)


def enumerated(program: Program) -> float:
    """The optimal value, by trying every set of entries at their bounds."""
    best = np.inf
    for sides in itertools.product((-1, 0, 1), repeat=program.size):
        held = np.array(sides)
        if program.simplex and (held[: program.simplex] > 0).any():
            continue
        y = np.where(held < 0, program.lower, np.where(held > 0, program.upper, 0.0))
        free = np.nonzero(held == 0)[0]
        if program.simplex and not (free < program.simplex).any():
            continue
        if len(free):
            row = (free < program.simplex).astype(float)
            edge = 1 if program.simplex else 0
            system = np.zeros((len(free) + edge, len(free) + edge))
            system[: len(free), : len(free)] = program.matrix[np.ix_(free, free)]
            right = -(program.linear[free] + program.matrix[free] @ y)
            if edge:
                system[-1, :-1] = system[:-1, -1] = row
                right = np.append(right, 1.0 - y[: program.simplex].sum())
            y[free] = np.linalg.lstsq(system, right, rcond=None)[0][: len(free)]
        inside = (y >= program.lower - 1e-10).all() and (y <= program.upper + 1e-10).all()
        if inside and (not program.simplex or abs(y[: program.simplex].sum() - 1) < 1e-9):
            best = min(best, program.value(y))
    return best


def slsqp(program: Program) -> float:
    """The optimal value by a solver of nonlinear programs, from several starts."""
    row = np.zeros(program.size)
    row[: program.simplex] = 1.0
    values = []
    for seed in range(2):
        start = np.random.default_rng(seed).uniform(size=program.size) * (program.upper - program.lower) + program.lower
        found = scipy_minimize(
            program.value, start, jac=lambda y: program.matrix @ y + program.linear, method="SLSQP",
            bounds=list(zip(program.lower, program.upper, strict=True)),
            constraints=[LinearConstraint(row[None], 1.0, 1.0)] if program.simplex else [],
            options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        feasible = program.feasible(found.x)
        if feasible is not None:
            values.append(program.value(feasible))
    return min(values)


def small_programs() -> Iterator[Program]:
    generator = np.random.default_rng(11)
    for size in (1, 2, 3, 4, 5):
        for simplex in range(size + 1):
            for rank in (None, 1, 2):
                yield program(generator, size, simplex, rank=rank)


def check(program: Program, y: np.ndarray) -> None:
    assert (y >= program.lower).all() and (y <= program.upper).all()
    if program.simplex:
        assert y[: program.simplex].sum() == pytest.approx(1.0, abs=1e-12)


def test_small_programs_against_all_active_sets() -> None:
    for given in small_programs():
        session = QPSolver().session(given.matrix, given.simplex)
        solution = session.solve(given.linear, given.lower, given.upper)
        check(given, solution.y)
        expected = enumerated(given)
        assert solution.trusted
        assert given.value(solution.y) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_larger_programs_against_another_solver(seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(6, 25))
    given = program(generator, size, int(generator.integers(0, size)), rank=int(generator.integers(1, size)))
    solution = QPSolver().session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper)
    check(given, solution.y)
    assert solution.trusted and solution.residual <= 1e-6
    assert given.value(solution.y) <= slsqp(given) + 1e-7 * (1 + abs(given.value(solution.y)))


@pytest.mark.parametrize("name", BACKENDS)
def test_every_installed_solver(name: str) -> None:
    solver = QPSolver(name)
    generator = np.random.default_rng(5)
    for size, simplex in ((3, 0), (4, 2), (8, 3), (12, 12)):
        given = program(generator, size, simplex)
        solution = solver.session(given.matrix, simplex).solve(given.linear, given.lower, given.upper)
        check(given, solution.y)
        best = slsqp(given)
        assert solution.trusted
        assert given.value(solution.y) <= best + 1e-6 * (1 + abs(best))
    assert solver.counts.solved == 4 and solver.counts.failed == 0


@pytest.mark.parametrize("name", INSTALLED)
def test_what_a_solver_itself_answers(name: str) -> None:
    """Without the polish and the other solvers behind it."""
    given = program(np.random.default_rng(3), 6, 3)
    solve = Daqp(given.matrix, given.scale, given.simplex, ridge=1e-11).solve if name == "daqp" else ONE_SHOT[name]
    raw = solve(given)
    assert raw is not None
    y = given.feasible(raw)
    assert y is not None
    assert given.value(y) == pytest.approx(slsqp(given), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", BACKENDS)
def test_minimize_with_every_installed_solver(name: str) -> None:
    import torch

    result = minimize(
        lambda x: ((x - 2).abs().sum(), (x**2).sum() - 2, x[0] - x[1]), torch.tensor([3.0, -1.0]).double(), qp_solver=name
    )
    assert result.success
    assert result.x.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


@pytest.mark.parametrize("name", NOT_INSTALLED)
def test_a_solver_that_is_not_installed_says_how_to_get_it(name: str) -> None:
    with pytest.raises(QPError, match=f"qp_solver='{name}' needs the package '{MODULES[name]}': pip install {MODULES[name]}"):
        QPSolver(name)


def test_without_any_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nonsmooth.qp.solver.is_installed", lambda name: False)
    assert available() == ("native",)
    for given in small_programs():
        solution = QPSolver().session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper)
        check(given, solution.y)
        assert given.value(solution.y) == pytest.approx(enumerated(given), rel=1e-6, abs=1e-6)
    with pytest.raises(QPError, match="qp_solver='osqp' needs the package 'osqp'"):
        QPSolver("osqp")


@pytest.mark.parametrize("name", BACKENDS)
def test_a_solver_that_refuses_a_program_is_one_that_failed(name: str) -> None:
    """Rounding can make a matrix indefinite; whatever a solver thinks of that, there is an answer within the bounds."""
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, -1e-3]])
    given = Program(matrix, np.array([-1.0, 0.5, 0.1]), -np.ones(3), np.ones(3))
    check(given, QPSolver(name).session(matrix).solve(given.linear, given.lower, given.upper).y)


def test_programs_that_share_a_matrix() -> None:
    generator = np.random.default_rng(8)
    given = program(generator, 7, 3)
    session = QPSolver().session(given.matrix, given.simplex)
    for _ in range(6):
        linear = generator.standard_normal(7)
        upper = np.concatenate([np.ones(3), np.full(4, 10.0 ** generator.uniform(-2, 2))])
        fresh = QPSolver().session(given.matrix, given.simplex).solve(linear, -upper * (np.arange(7) > 2), upper)
        again = session.solve(linear, -upper * (np.arange(7) > 2), upper)
        np.testing.assert_allclose(again.y, fresh.y, atol=1e-7 * upper.max())


@pytest.mark.parametrize("seed", range(3))
def test_large_programs_begin_at_an_earlier_answer(seed: int) -> None:
    generator = np.random.default_rng(seed)
    large = program(generator, 130, 110, rank=60)
    solver = QPSolver()
    first = solver.session(large.matrix, large.simplex).solve(large.linear, large.lower, large.upper)
    nearby = large.linear + 1e-3 * generator.standard_normal(130)
    warm = solver.session(large.matrix, large.simplex).solve(nearby, large.lower, large.upper, first.y)
    assert solver.counts.warm == 1 and warm.trusted
    changed = Program(large.matrix, nearby, large.lower, large.upper, large.simplex)
    cold = solver.session(large.matrix, large.simplex).solve(nearby, large.lower, large.upper)
    assert changed.value(warm.y) == pytest.approx(changed.value(cold.y), rel=1e-7, abs=1e-7)


def test_a_useless_beginning_does_no_harm() -> None:
    large = program(np.random.default_rng(0), 130, 110, rank=60)
    session = QPSolver().session(large.matrix, large.simplex)
    cold = session.solve(large.linear, large.lower, large.upper)
    for start in (np.zeros(130), np.full(130, np.nan), np.full(130, 1e9)):
        found = session.solve(large.linear, large.lower, large.upper, start)
        assert found.trusted and large.value(found.y) == pytest.approx(large.value(cold.y), rel=1e-7, abs=1e-7)


def test_duplicated_rows() -> None:
    """The same gradient many times over: the matrix has rank one."""
    vectors = np.ones((8, 1)) @ np.array([[1.0, -2.0]])
    given = Program(vectors @ vectors.T, -np.linspace(0, 1, 8), np.zeros(8), np.ones(8), 8)
    solution = QPSolver().session(given.matrix, 8).solve(given.linear, given.lower, given.upper)
    np.testing.assert_allclose(solution.y, np.eye(8)[7], atol=1e-9)


def nearly_canceling(seed: int) -> Program:
    """A gradient that rows nearly take away, each of them there several times with small differences: near a solution
    where pieces of a constraint meet, all programs are like this."""
    generator = np.random.default_rng(seed)
    pieces = generator.standard_normal((3, 5)) * 6.0
    rows = np.repeat(pieces, 6, axis=0) + 1e-4 * generator.standard_normal((18, 5))
    gradient = -generator.uniform(1, 3, 3) @ pieces + 1e-4 * generator.standard_normal(5)
    vectors = np.vstack([gradient, rows])
    linear = np.concatenate([[0.0], 1e-8 * generator.standard_normal(18)])
    return Program(vectors @ vectors.T, linear, np.zeros(19), np.concatenate([[1.0], np.full(18, 10.0)]), 1)


@pytest.mark.parametrize("compiled", [True, False])
def test_answers_are_judged_by_what_is_left(compiled: bool) -> None:
    for seed in range(20):
        given = nearly_canceling(seed)
        solver = QPSolver("native")
        if not compiled:
            solver.kernel = None
        found = solver.session(given.matrix, 1).solve(given.linear, given.lower, given.upper)
        assert found.trusted
        # As an entry of the program the gradient counts: what is left of it is 1e-5 of its length.
        assert given.residual(found.y) <= 1e-7, seed
        slopes = given.matrix @ found.y + given.linear
        left = np.sqrt(found.y @ given.matrix @ found.y)
        assert slopes[1:].min() >= -1e-7 * left * given.scale.max(), seed


def test_a_matrix_of_zeros() -> None:
    solution = QPSolver().session(np.zeros((3, 3)), 1).solve(np.array([0.0, 1.0, -1.0]), np.zeros(3), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(solution.y, [1, 0, 3], atol=1e-9)


def test_badly_scaled_rows() -> None:
    vectors = np.diag([1.0, 1e-6, 1e6]) @ np.random.default_rng(0).standard_normal((3, 5))
    given = Program(vectors @ vectors.T, np.array([0.0, -1e-6, 1e3]), np.zeros(3), np.array([1.0, 10.0, 10.0]), 1)
    solution = QPSolver().session(given.matrix, 1).solve(given.linear, given.lower, given.upper)
    assert solution.trusted
    assert given.value(solution.y) == pytest.approx(enumerated(given), rel=1e-8)


def test_closed_form_is_exact() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        for simplex in (0, 1):
            given = program(generator, simplex + 1, simplex)
            y = closed_form(given)
            assert y is not None
            assert given.value(y) == pytest.approx(enumerated(given), rel=1e-10, abs=1e-10)
    assert closed_form(program(generator, 2, 0)) is None
    assert closed_form(program(generator, 2, 2)) is None


@pytest.mark.parametrize(("slope", "expected"), [(2.0, -3.0), (-2.0, 5.0), (0.0, 0.0)])
def test_closed_form_without_curvature(slope: float, expected: float) -> None:
    y = closed_form(Program(np.zeros((1, 1)), np.array([slope]), np.array([-3.0]), np.array([5.0])))
    assert y is not None and y[0] == expected


def test_the_residual_vanishes_at_the_solution_only() -> None:
    for given in small_programs():
        y = QPSolver().session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper).y
        assert given.residual(y) <= 1e-6
        for seed in range(3):
            other = np.random.default_rng(seed).uniform(given.lower, given.upper)
            moved = given.feasible(y + 0.1 * (other - y))
            assert moved is not None
            if given.value(moved) > given.value(y) + 1e-3 * (1 + abs(given.value(y))):
                assert given.residual(moved) > 1e-6


def test_feasible_moves_into_the_simplex_and_the_box() -> None:
    given = Program(np.eye(3), np.zeros(3), np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 1.0]), 2)
    y = given.feasible(np.array([0.5, 1.5, -4.0]))
    assert y is not None
    np.testing.assert_allclose(y, [1 / 3, 2 / 3, -1.0])
    assert given.feasible(np.array([np.nan, 1.0, 0.0])) is None
    assert given.feasible(np.array([-1.0, 0.0, 0.0])) is None


@pytest.mark.parametrize("seed", range(10))
def test_polishing_finishes_what_was_begun(seed: int) -> None:
    generator = np.random.default_rng(seed)
    given = program(generator, 6, int(generator.integers(0, 5)), rank=int(generator.integers(2, 8)))
    exact = QPSolver().session(given.matrix, given.simplex).solve(given.linear, given.lower, given.upper).y
    rough = given.feasible(exact + 1e-3 * generator.standard_normal(6))
    assert rough is not None
    polished = active_set(given, rough, rounds=40)
    check(given, polished)
    assert given.residual(polished) <= min(given.residual(rough), 1e-7)
    assert given.value(polished) <= enumerated(given) + 1e-9 * (1 + abs(given.value(exact)))


@pytest.mark.parametrize("scale", [1e-10, 1e-5, 1e5, 1e10])
def test_answers_do_not_depend_on_units(scale: float) -> None:
    """The answer is the same when the objective is multiplied: near a solution programs become tiny."""
    given = program(np.random.default_rng(2), 6, 3)
    plain = QPSolver().session(given.matrix, 3).solve(given.linear, given.lower, given.upper).y
    scaled = QPSolver().session(scale * given.matrix, 3).solve(scale * given.linear, given.lower, given.upper).y
    np.testing.assert_allclose(scaled, plain, atol=1e-6 * given.upper.max())


def test_what_depends_on_memory_is_asked_by_name_only() -> None:
    assert "proxqp" not in QPSolver().order(10, warm=False)
    if "proxqp" in available():
        assert QPSolver("proxqp").order(10, warm=False)[0] == "proxqp"


@pytest.mark.skipif(not is_installed("osqp"), reason="osqp is not installed")
def test_osqp_is_not_asked_what_it_would_complain_about(capfd: pytest.CaptureFixture[str]) -> None:
    """It says on the standard output that a matrix is not that of a convex program, also where it is told to be quiet."""
    for matrix in (np.array([[1.0, 3.0], [3.0, 1.0]]), np.array([[1.0, np.inf], [np.inf, 1.0]])):
        assert ONE_SHOT["osqp"](Program(matrix, np.ones(2), np.zeros(2), np.ones(2))) is None
    found = ONE_SHOT["osqp"](Program(np.eye(2), np.array([-0.5, 1.0]), np.zeros(2), np.ones(2)))
    np.testing.assert_allclose(found, [0.5, 0.0], atol=1e-5)
    assert capfd.readouterr() == ("", "")
