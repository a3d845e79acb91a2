"""The native active-set method, against the one in Python and against what an answer is worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsmooth.native import load
from nonsmooth.qp import QPSolver
from nonsmooth.qp.active_set import active_set
from nonsmooth.qp.native import Kernel
from nonsmooth.qp.program import Program

needs_library = pytest.mark.skipif(load() is None, reason="the native library is missing or switched off")


def random_program(seed: int, size: int, simplex: int, rank: int, weight: float) -> Program:
    """A program like those of the model: gradients that may depend on each other, errors, multipliers of two signs."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((size, rank)) * 10.0 ** generator.uniform(-3, 3, (size, 1))
    linear = np.concatenate([generator.exponential(size=simplex), generator.standard_normal(size - simplex)])
    lower, upper = np.zeros(size), np.full(size, weight)
    lower[simplex:][generator.random(size - simplex) < 0.5] = -weight
    upper[:simplex] = 1.0
    return Program(rows @ rows.T, linear * 10.0 ** generator.uniform(-3, 3), lower, upper, simplex)


def start_of(program: Program, generator: np.random.Generator) -> np.ndarray:
    start = generator.uniform(program.lower, program.upper)
    return start if program.simplex == 0 else np.where(np.arange(program.size) < program.simplex, np.abs(start) + 1e-3, start)


@needs_library
@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.floats(0.0, 1.0), st.integers(1, 30), st.sampled_from([1e-3, 1.0, 50.0, 1e4])
)
def test_as_good_as_the_method_in_python(seed: int, size: int, share: float, rank: int, weight: float) -> None:
    program = random_program(seed, size, round(share * size), rank, weight)
    generator = np.random.default_rng(seed)
    start = start_of(program, generator)
    functions = load()
    assert functions is not None
    found = Kernel(functions).solve(
        program.matrix, program.linear, program.lower, program.upper, program.simplex, start, 20 + 10 * size
    )
    assert found is not None
    y, residual = found
    begin = program.feasible(start)
    assert begin is not None
    other = active_set(program, begin, rounds=20 + 10 * size)
    assert (y >= program.lower).all() and (y <= program.upper).all()
    if program.simplex:
        assert y[: program.simplex].sum() == pytest.approx(1.0, abs=1e-12)
    assert residual == pytest.approx(program.residual(y), rel=0.1, abs=1e-7)
    assert residual <= max(1e-7, 10.0 * program.residual(other))
    if residual <= 1e-9 and program.residual(other) <= 1e-9:
        size_of = abs(program.value(other)) + float(np.abs(program.linear) @ np.abs(other))
        rounding = 1e-12 * float(np.abs(y) @ np.abs(program.matrix) @ np.abs(y))
        assert program.value(y) <= program.value(other) + 1e-5 * size_of + rounding + 1e-15


@needs_library
def test_one_kernel_for_programs_of_all_sizes() -> None:
    """Its memory is used again, and the matrix that lies in it is not mistaken for another."""
    functions = load()
    assert functions is not None
    kernel = Kernel(functions)
    for seed in range(60):
        size = int(np.random.default_rng(seed).integers(1, 90))
        program = random_program(seed, size, size // 2, 40, 2.0)
        for _ in range(2):
            found = kernel.solve(
                program.matrix,
                program.linear,
                program.lower,
                program.upper,
                program.simplex,
                program.upper.copy(),
                20 + 10 * size,
            )
            assert found is not None and program.residual(found[0]) <= 1e-7


@needs_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_is_trusted_where_something_is_not_finite(bad: float) -> None:
    session = QPSolver().session(np.array([[bad, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]))
    solution = session.solve(np.array([-1.0, -1.0, -1.0]), np.zeros(3), np.ones(3), np.zeros(3))
    assert not solution.trusted


@needs_library
def test_an_answer_with_a_slope_that_is_far_too_steep_is_not_trusted() -> None:
    """At 1, an entry of the simplex cannot move up; that must not hide how far it should move."""
    program = Program(np.diag([1e12, 1e-8]), np.zeros(2), np.zeros(2), np.ones(2), 2)
    assert program.residual(np.array([1.0, 0.0])) > 1.0
    functions = load()
    assert functions is not None
    found = Kernel(functions).solve(program.matrix, program.linear, program.lower, program.upper, 2, np.array([1.0, 0.0]), 40)
    assert found is not None and found[1] <= 1e-7 and program.value(found[0]) < 1e-8


@needs_library
@pytest.mark.parametrize("rank", [200, 60], ids=["definite", "semidefinite"])
@pytest.mark.parametrize("simplex", [0, 20])
def test_with_and_without_lapack(rank: int, simplex: int) -> None:
    functions = load()
    assert functions is not None
    program = random_program(3, 150, simplex, rank, 1e4)
    start = start_of(program, np.random.default_rng(0))
    with_lapack, without = Kernel(functions), Kernel(functions)
    assert with_lapack.factorize  # scipy is there, and so is its LAPACK
    without.factorize = None
    given = (program.dense, program.linear, program.lower, program.upper, program.simplex, start, 20 + 10 * program.size)
    one, other = with_lapack.solve(*given), without.solve(*given)
    assert one is not None and other is not None
    assert one[1] < 1e-7 and other[1] < 1e-7
    assert program.value(one[0]) == pytest.approx(program.value(other[0]), rel=1e-7)
