"""The compiled active-set method, against the one in Python and against what an answer is worth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonsmooth.qp import QPSolver
from nonsmooth.qp.active import active_set
from nonsmooth.qp.kernel import Kernel, address, compiled
from nonsmooth.qp.program import Program

needs_compiler = pytest.mark.skipif(compiled() is None, reason="there is no C compiler")


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


@needs_compiler
@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.floats(0.0, 1.0), st.integers(1, 30), st.sampled_from([1e-3, 1.0, 50.0, 1e4])
)
def test_as_good_as_the_method_in_python(seed: int, size: int, share: float, rank: int, weight: float) -> None:
    program = random_program(seed, size, round(share * size), rank, weight)
    generator = np.random.default_rng(seed)
    start = start_of(program, generator)
    function = compiled()
    assert function is not None
    found = Kernel(function).solve(
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


@needs_compiler
def test_one_kernel_for_programs_of_all_sizes() -> None:
    """Its memory is used again, and the matrix that lies in it is not mistaken for another."""
    function = compiled()
    assert function is not None
    kernel = Kernel(function)
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


@needs_compiler
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_is_trusted_where_something_is_not_finite(bad: float) -> None:
    session = QPSolver().session(np.array([[bad, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]))
    solution = session.solve(np.array([-1.0, -1.0, -1.0]), np.zeros(3), np.ones(3), np.zeros(3))
    assert not solution.trusted


ANSWERING = """
import json, os, sys
import numpy as np
from nonsmooth.qp import QPSolver
from nonsmooth.qp.kernel import compiled

for line in sys.stdin:
    child = os.fork()
    if not child:
        environment, umask = json.loads(line)
        os.environ.clear()
        os.environ.update(environment)
        os.umask(umask)
        y = QPSolver().session(np.eye(3) + 1).solve(np.array([-2.0, 1.0, -3.0]), np.zeros(3), np.ones(3)).y
        print(compiled() is not None, y.round(9).tolist(), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("no answer")
"""
"""For every environment that it is given, a process answers that has nothing but the imports."""

Answer = Callable[..., str]


@pytest.fixture(scope="module")
def answer() -> Iterator[Answer]:
    """`answer(environment)`: whether there is compiled code in a new process with this environment, and a solution there."""
    process = subprocess.Popen([sys.executable, "-c", ANSWERING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    asked, answers = process.stdin, process.stdout

    def ask(environment: dict[str, str], umask: int = 0o022) -> str:
        asked.write(json.dumps([environment, umask]) + "\n")
        asked.flush()
        return answers.readline().strip()

    yield ask
    process.communicate()
    assert process.returncode == 0


@pytest.fixture(scope="module")
def copying(answer: Answer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiler that compiles nothing: it writes a library that was built before."""
    folder = tmp_path_factory.mktemp("copying")
    answer({**os.environ, "COMPILE_INSPECT_CACHE": str(folder)})
    (library,) = (folder / "kernels").iterdir()
    compiler = folder / "compiler"
    compiler.write_text(f"""#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncat '{library}' > "$2"\n""")
    compiler.chmod(0o700)
    return str(compiler)


@needs_compiler
def test_it_is_built_once_and_can_be_turned_off(answer: Answer, tmp_path: Path) -> None:
    here = {**os.environ, "COMPILE_INSPECT_CACHE": str(tmp_path)}
    assert answer(here) == "True [0.5, 0.0, 1.0]"
    (library,) = (tmp_path / "kernels").iterdir()
    built = library.stat().st_mtime_ns
    assert answer({**here, "PATH": os.environ["PATH"]}) == "True [0.5, 0.0, 1.0]"
    assert library.stat().st_mtime_ns == built
    assert answer({**here, "NONSMOOTH_KERNEL": "0"}) == "False [0.5, 0.0, 1.0]"


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="needs another owner")
def test_a_library_of_somebody_else_is_not_loaded(answer: Answer, copying: str, tmp_path: Path) -> None:
    here = {**os.environ, "COMPILE_INSPECT_CACHE": str(tmp_path), "CC": copying}
    answer(here)
    (library,) = (tmp_path / "kernels").iterdir()
    library.write_bytes(b"not a library")
    os.chown(library, 12345, -1)
    assert answer(here) == "True [0.5, 0.0, 1.0]"  # built anew
    (tmp_path / "kernels").chmod(0o777)
    assert answer(here) == "False [0.5, 0.0, 1.0]"


def test_without_a_compiler(answer: Answer, tmp_path: Path) -> None:
    here = {**os.environ, "COMPILE_INSPECT_CACHE": str(tmp_path), "PATH": str(tmp_path), "CC": "none"}
    assert answer(here) == "False [0.5, 0.0, 1.0]"


@needs_compiler
def test_an_answer_with_a_slope_that_is_far_too_steep_is_not_trusted() -> None:
    """At 1, an entry of the simplex cannot move up; that must not hide how far it should move."""
    program = Program(np.diag([1e12, 1e-8]), np.zeros(2), np.zeros(2), np.ones(2), 2)
    assert program.residual(np.array([1.0, 0.0])) > 1.0
    function = compiled()
    assert function is not None
    found = Kernel(function).solve(program.matrix, program.linear, program.lower, program.upper, 2, np.array([1.0, 0.0]), 40)
    assert found is not None and found[1] <= 1e-7 and program.value(found[0]) < 1e-8


@needs_compiler
@pytest.mark.parametrize(
    "wrong", [{"CC": " "}, {"CC": "gcc '"}, {"CC": "nothing-there"}, {"HOME": "/nowhere", "XDG_CACHE_HOME": ""}]
)
def test_surroundings_that_are_odd(answer: Answer, wrong: dict[str, str], tmp_path: Path) -> None:
    here = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **wrong}
    here.pop("COMPILE_INSPECT_CACHE", None)
    assert answer(here).endswith("[0.5, 0.0, 1.0]")


@needs_compiler
def test_others_cannot_write_to_the_library_and_a_damaged_one_is_made_anew(
    answer: Answer, copying: str, tmp_path: Path
) -> None:
    here = {**os.environ, "COMPILE_INSPECT_CACHE": str(tmp_path), "CC": copying}
    answer(here, umask=0o002)
    (library,) = (tmp_path / "kernels").iterdir()
    assert not library.stat().st_mode & 0o022
    library.write_bytes(b"damaged")
    assert answer(here) == "True [0.5, 0.0, 1.0]"
    assert library.stat().st_size > 1000


@needs_compiler
@pytest.mark.parametrize("rank", [200, 60], ids=["definite", "semidefinite"])
@pytest.mark.parametrize("simplex", [0, 20])
def test_with_and_without_lapack(rank: int, simplex: int) -> None:
    function = compiled()
    assert function is not None
    program = random_program(3, 150, simplex, rank, 1e4)
    start = start_of(program, np.random.default_rng(0))
    with_lapack, without = Kernel(function), Kernel(function)
    assert with_lapack.factorise  # scipy is there, and so is its LAPACK
    without.factorise = None
    given = (program.dense, program.linear, program.lower, program.upper, program.simplex, start, 20 + 10 * program.size)
    one, other = with_lapack.solve(*given), without.solve(*given)
    assert one is not None and other is not None
    assert one[1] < 1e-7 and other[1] < 1e-7
    assert program.value(one[0]) == pytest.approx(program.value(other[0]), rel=1e-7)


def test_where_an_array_lies() -> None:
    array = np.arange(12.0).reshape(3, 4)
    fixed = array.copy()
    fixed.flags.writeable = False
    for each in (array, array[1], array[1:], fixed, fixed[2], np.zeros(0)):
        assert address(each) == each.ctypes.data
    for pieces in (array[:, 1], array.T, fixed.T):
        with pytest.raises(AssertionError, match="pieces"):
            address(pieces)
