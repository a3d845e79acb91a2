"""Loading the native library, what is said where it cannot be loaded, and which method ran."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from nonsmooth import minimize
from nonsmooth.native import address, library, load
from nonsmooth.native.sources import source_digest
from nonsmooth.qp import available

SWITCHED_OFF = os.environ.get("NONSMOOTH_NATIVE") == "0"
needs_library = pytest.mark.skipif(load() is None, reason="the native library is missing or switched off")
SOURCES = library.LIBRARY.parent


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Loads anew, as another process would, and leaves no trace of it."""
    monkeypatch.delenv("NONSMOOTH_NATIVE", raising=False)
    load.cache_clear()
    yield monkeypatch
    load.cache_clear()


@pytest.mark.skipif(SWITCHED_OFF or shutil.which("cc") is None, reason="switched off, or there is no C compiler")
def test_it_is_built_where_there_is_a_compiler() -> None:
    assert load() is not None, "run: pip install --no-deps --editable ."


def absolute(x: torch.Tensor) -> torch.Tensor:
    return abs(x - 1).sum()


@needs_library
def test_the_result_names_the_method(fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    native = minimize(absolute, torch.zeros(2))
    assert native.method == "native" and "by the native method" in str(native)
    if "daqp" in available():
        assert minimize(absolute, torch.zeros(2), qp_solver="daqp").method == "python"
    fresh.setenv("NONSMOOTH_NATIVE", "0")
    load.cache_clear()
    python = minimize(absolute, torch.zeros(2))
    assert python.method == "python" and "by the python method" in str(python)
    assert python.f == pytest.approx(native.f, abs=1e-8)
    assert not caplog.records  # the user chose it


def test_a_missing_library_is_told_once(fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    fresh.setattr(library, "LIBRARY", tmp_path / "libnonsmooth.so")
    for _ in range(2):
        assert minimize(absolute, torch.zeros(2)).method == "python"
    (record,) = [each for each in caplog.records if each.name == "nonsmooth"]
    assert record.levelno == logging.WARNING
    assert "does not exist" in record.getMessage() and "pip install" in record.getMessage()


def test_the_remedy_outside_a_source_tree(fresh: pytest.MonkeyPatch) -> None:
    assert "--editable" in library._remedy()
    fresh.setattr(library, "__file__", "/usr/lib/python3/site-packages/nonsmooth/native/library.py")
    assert "--force-reinstall" in library._remedy() and "--no-binary compile-inspect" in library._remedy()


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_damaged_library_is_not_used(
    content: bytes, fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    damaged = tmp_path / "libnonsmooth.so"
    damaged.write_bytes(content)
    fresh.setattr(library, "LIBRARY", damaged)
    assert load() is None and len(caplog.records) == 1


@needs_library
def test_a_library_of_other_sources_is_not_used(
    fresh: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    fresh.setattr(library, "LIBRARY", Path(shutil.copy(library.LIBRARY, tmp_path)))
    assert load() is not None  # without sources, as installed
    load.cache_clear()
    (tmp_path / "step.c").write_text("int changed;")
    assert load() is None and "different sources" in caplog.text


def test_the_digest_depends_on_contents_not_on_line_ends(tmp_path: Path) -> None:
    assert source_digest(tmp_path) is None
    (tmp_path / "a.c").write_bytes(b"int a;\n")
    first = source_digest(tmp_path)
    (tmp_path / "a.c").write_bytes(b"int a;\r\n")
    assert source_digest(tmp_path) == first
    (tmp_path / "a.c").write_bytes(b"int b;\n")
    assert source_digest(tmp_path) != first


@needs_library
def test_both_builds_compute_the_same_numbers() -> None:
    """That for all processors, and that for those with AVX2."""
    opened = ctypes.CDLL(str(library.LIBRARY))
    if not opened.use_avx2():
        pytest.skip("the processor has no AVX2, or the library no code for it")
    pointer, integer, number = ctypes.c_void_p, ctypes.c_long, ctypes.c_double
    generator, size = np.random.default_rng(0), 70
    rows = generator.standard_normal((size, 90))
    answers = []
    for name in ("qp_solve", "qp_solve_avx2"):
        solve = opened[name]
        solve.argtypes, solve.restype = [pointer, *[integer] * 3, number, pointer, pointer, number], number
        memory = np.zeros(2 * size * size + 21 * size)
        parts = [rows @ rows.T, np.linspace(-40.0, 30.0, size), np.full(size, -0.1), np.full(size, 0.1), np.zeros(size)]
        memory[: size * size + 4 * size] = np.concatenate([part.ravel() for part in parts])
        residual = solve(address(memory), size, 0, 1000, 1e-9, None, None, 0.0)
        assert 0 <= residual <= 1e-9
        answers.append(memory[size * size + 3 * size : size * size + 4 * size].copy())
    np.testing.assert_array_equal(answers[0], answers[1])


def test_the_address_of_an_array() -> None:
    array = np.arange(12.0).reshape(3, 4)
    fixed = array.copy()
    fixed.flags.writeable = False
    for each in (array, array[1], array[1:], fixed, fixed[2], np.zeros(0)):
        assert address(each) == each.ctypes.data
    for strided in (array[:, 1], array.T, fixed.T):
        with pytest.raises(AssertionError, match="contiguous"):
            address(strided)
