"""Load the native library and declare its functions.

The package build (`hatch_build.py`) puts the library next to this module. It is a plain shared library that does not use
Python's headers, so one build works with all versions of Python. `NONSMOOTH_NATIVE=0` switches it off.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from nonsmooth.native.sources import source_digest

logger = logging.getLogger("nonsmooth")

Method = Literal["native", "python"]
"""How the quadratic programs of a run are solved: by the native library, or by the same methods in Python."""

LIBRARY = Path(__file__).with_name("libnonsmooth.so")
SWITCH_VARIABLE = "NONSMOOTH_NATIVE"


@dataclass(frozen=True)
class Functions:
    """The functions of the library."""

    solve: Callable[..., float]
    """Solves a quadratic program."""
    errors: Callable[..., None]
    """Computes linearization errors."""
    new_workspace: Callable[..., int | None]
    """Allocates the workspace of a run's models."""
    free_workspace: Callable[..., None]
    build: Callable[..., int]
    """Builds a model in the workspace."""
    step: Callable[..., int]
    """Computes the step of the model in the workspace."""
    reference: Callable[..., float]
    """Predicts the violation after the step that minimizes the violation alone."""


@cache
def load() -> Functions | None:
    """The functions of the library; None if it is switched off or missing. A missing library is logged once as a warning."""
    if os.environ.get(SWITCH_VARIABLE, "1") == "0":
        return None
    try:
        return _declare(_open(LIBRARY))
    except (OSError, AttributeError) as error:  # AttributeError: the library lacks a function
        if sys.platform == "win32":  # the library is not built on Windows
            logger.debug("the native library is not used: %s", error)
        else:
            logger.warning(
                "the native library of nonsmooth cannot be used, so quadratic programs are solved in Python, which is "
                "slower: %s. Reinstall with a C compiler: %s (%s=0 selects Python without this warning)",
                error, _remedy(), SWITCH_VARIABLE,
            )  # fmt: skip
        return None


def _open(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise OSError(f"{path} does not exist")
    library = ctypes.CDLL(str(path))
    library.source_digest.restype = ctypes.c_char_p
    expected = source_digest(path.parent)
    if expected is not None and library.source_digest() != expected.encode():
        raise OSError(f"{path} was built from different sources than those next to it")
    return library


def _remedy() -> str:
    root = Path(__file__).parents[3]
    if (root / "hatch_build.py").exists():  # a source tree
        return f"pip install --no-deps --editable {root}"
    return "pip install --force-reinstall --no-deps --no-cache-dir --no-binary compile-inspect compile-inspect"


def _declare(library: ctypes.CDLL) -> Functions:
    suffix = "_avx2" if library.use_avx2() else ""

    def function(name: str, result: Any, *arguments: Any) -> Any:
        declared = library[name + suffix]
        declared.restype, declared.argtypes = result, arguments
        return declared

    pointer, number, integer, key, flag = ctypes.c_void_p, ctypes.c_double, ctypes.c_long, ctypes.c_int64, ctypes.c_int
    metric = (integer, integer, pointer, number, integer)
    point = (pointer, number, pointer, key)
    constraints = (integer, integer, pointer, pointer, key, pointer)
    lines = (integer, *[pointer] * 5)
    owners = (pointer, pointer)
    return Functions(
        solve=function("qp_solve", number, pointer, integer, integer, integer, number, pointer, pointer, number),
        errors=function(
            "rows_errors", None, pointer, pointer, pointer, integer, integer, pointer, pointer, number, number, pointer
        ),
        new_workspace=function("workspace_new", pointer, integer, *[pointer] * 5),
        free_workspace=function("workspace_free", None, pointer),
        build=function("workspace_build", flag, pointer, *metric, *point, *lines, *constraints, *lines, *owners, number),
        step=function("workspace_step", flag, pointer, pointer, number, number, pointer),
        reference=function("workspace_reference", number, pointer, pointer, number, number),
    )


def address(array: NDArray[Any]) -> int:
    """The address of an array's first entry. The array must be contiguous, and must stay alive while the address is used."""
    try:
        return ctypes.addressof(_first_byte(array))  # type: ignore[arg-type]  # takes a quarter of the time of the code below
    except (TypeError, ValueError):  # the array is empty or read-only
        assert array.flags.c_contiguous, "the array is not contiguous"
        pointer: int = array.__array_interface__["data"][0]
        return pointer


_first_byte = ctypes.c_char.from_buffer


@cache
def linear_algebra() -> tuple[int, ...] | None:
    """The addresses of the BLAS and LAPACK functions that the library calls, dpotrf first.

    They are SciPy's functions, looked up in the same way as in Cython modules.
    """
    try:
        from scipy.linalg import cython_blas, cython_lapack

        # The number of int pointers in each signature: some BLAS libraries use a longer integer than C's int.
        functions = (
            (cython_lapack, "dpotrf", 3), (cython_blas, "dgemm", 6), (cython_blas, "dsymm", 5), (cython_blas, "dsyrk", 4),
            (cython_blas, "dsyr2k", 5),
        )  # fmt: skip
        addresses = [_function_address(module.__pyx_capi__[name], integers) for module, name, integers in functions]
    except Exception as error:  # the library works without them
        logger.debug("BLAS and LAPACK were not found: %s", error)
        return None
    return None if None in addresses else tuple(entry for entry in addresses if entry is not None)


def _function_address(capsule: Any, integers: int) -> int | None:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name(capsule)
    if signature.count(b" int *") + signature.count(b"(int *") != integers:
        return None
    function: int | None = pointer(capsule, signature)
    return function
