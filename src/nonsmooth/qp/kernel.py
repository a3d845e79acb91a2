"""The active-set method and the steps of models in C, compiled once on a machine that has a compiler, kept in the cache.

Between two steps of the method the interpreter takes many times as long as the arithmetic of a small program. Where there is
no compiler, or it fails, `active_set` does the same in Python. `NONSMOOTH_KERNEL=0` turns the compiled one off.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonsmooth.qp.program import Pull

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

SOURCE = Path(__file__).with_name("step.c")
INCLUDED = tuple(SOURCE.with_name(name) for name in ("bench.c", "kernel.c", "rows.c"))
FLAGS = ("-O3", "-fPIC", "-shared", "-ffp-contract=off")
"""A product and a sum are rounded each for itself, so that all processors find the same numbers."""
LONGEST_COMPILATION = 60.0
MOST = 600
"""Programs with more entries are better done with BLAS, by `active_set`."""


@dataclass(frozen=True)
class Compiled:
    """The compiled functions."""

    solve: Callable[..., float]
    """A quadratic program."""
    errors: Callable[..., None]
    """How far linear functions lie from the truth."""
    new_bench: Callable[..., int | None]
    free_bench: Callable[..., None]
    build: Callable[..., int]
    """A model on a bench."""
    step: Callable[..., int]
    """The step of the model on a bench."""
    reference: Callable[..., float]
    """What could be done about the violation by a step that looks at nothing else."""


@cache
def compiled() -> Compiled | None:
    """The compiled functions, or None. Asked for again they are at hand."""
    if os.environ.get("NONSMOOTH_KERNEL", "1") == "0" or sys.platform == "win32":
        return None
    try:
        library = _loaded()
        solve, errors, new, free = library.qp_solve, library.rows_errors, library.bench_new, library.bench_free
        build, step, reference = library.bench_build, library.bench_step, library.bench_reference
    except Exception as error:  # whatever it is, there is another way
        logger.debug("quadratic programs are solved without compiled code: %s", error)
        return None
    pointer, number, integer = ctypes.c_void_p, ctypes.c_double, ctypes.c_long
    solve.argtypes = [pointer, integer, integer, integer, number, pointer, pointer, number]
    solve.restype = number
    errors.argtypes = [pointer, pointer, pointer, integer, integer, pointer, pointer, number, number, pointer]
    new.argtypes, new.restype = [integer, *[pointer] * 5], pointer
    free.argtypes, free.restype = [pointer], None
    metric: list[Any] = [integer, integer, pointer, number, integer]
    here: list[Any] = [pointer, number, pointer, ctypes.c_int64]
    constraints: list[Any] = [integer, integer, pointer, pointer, ctypes.c_int64, pointer]
    lines: list[Any] = [integer, *[pointer] * 5]
    build.argtypes = [pointer, *metric, *here, *lines, *constraints, *lines, pointer, pointer, number]
    step.argtypes = [pointer, pointer, pointer, number, number, pointer]
    build.restype = step.restype = ctypes.c_int
    reference.argtypes, reference.restype = [pointer, pointer, number, number], number
    errors.restype = None
    return Compiled(solve, errors, new, free, build, step, reference)


def address(array: NDArray[Any]) -> int:
    """Where the numbers of an array lie; they must lie one behind the other, and be held."""
    try:
        return ctypes.addressof(_first_byte(array))  # type: ignore[arg-type]  # a quarter of the time of what follows
    except (TypeError, ValueError):  # it is empty, or not to be written to
        assert array.flags.c_contiguous, "the array is in pieces"
        found: int = array.__array_interface__["data"][0]
        return found


_first_byte = ctypes.c_char.from_buffer


@cache
def linear_algebra() -> tuple[int, ...] | None:
    """Where the functions of BLAS and LAPACK lie that compiled code calls, in the libraries that scipy brings: dpotrf first.

    They are found as Cython modules find them.
    """
    try:
        from scipy.linalg import cython_blas, cython_lapack

        # How many pointers to an int each takes: elsewhere an int may be longer than in C.
        wanted = (
            (cython_lapack, "dpotrf", 3), (cython_blas, "dgemm", 6), (cython_blas, "dsymm", 5), (cython_blas, "dsyrk", 4),
            (cython_blas, "dsyr2k", 5),
        )  # fmt: skip
        found = [_capsule(module.__pyx_capi__[name], integers) for module, name, integers in wanted]
    except Exception as error:  # there are other ways
        logger.debug("BLAS and LAPACK were not found: %s", error)
        return None
    return None if None in found else tuple(place for place in found if place is not None)


def _capsule(capsule: Any, integers: int) -> int | None:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name(capsule)
    if signature.count(b" int *") + signature.count(b"(int *") != integers:
        return None
    found: int | None = pointer(capsule, signature)
    return found


class Kernel:
    """The compiled method with memory of its own: one for each run, not for several threads at once."""

    def __init__(self, functions: Compiled) -> None:
        self.functions, self._solve = functions, functions.solve
        libraries = linear_algebra()
        self.factorise = None if libraries is None else libraries[0]
        self._memory: Vector = np.empty(0)
        self._room = 0
        self._matrix: Matrix | None = None
        self._views: dict[int, tuple[Any, ...]] = {}

    def solve(
        self,
        matrix: Matrix,
        linear: Vector,
        lower: Vector,
        upper: Vector,
        simplex: int,
        start: Vector,
        rounds: int,
        pull: Pull | None = None,
    ) -> tuple[Vector, float] | None:
        """The answer found from a start, and its residual; None where the start cannot be made feasible."""
        size = len(linear)
        if size not in self._views:
            self._reserve(size)
        places = self._views[size]
        if self._matrix is not matrix:
            places[0][...] = matrix
        # Kept alive, so that no other matrix can be mistaken for it. Only the last one lies in the memory.
        self._matrix = matrix
        places[1][...] = linear
        places[2][...] = lower
        places[3][...] = upper
        y = places[4]
        y[...] = start
        products, square = (None, 0.0) if pull is None else (address(pull.products), pull.square)
        residual = self._solve(self._address, size, simplex, rounds, 1e-9, self.factorise, products, square)
        return None if residual < 0 else (y.copy(), residual)

    def _enlarge(self, needed: int) -> None:
        if needed > self._room:
            self._room = max(needed, 2 * self._room)
            self._memory, self._views, self._matrix = np.empty(self._room), {}, None
            self._address = self._memory.ctypes.data

    def _reserve(self, size: int) -> None:
        self._enlarge(2 * size * size + 21 * size)
        square = size * size
        vectors = tuple(self._memory[square + size * i : square + size * (i + 1)] for i in range(4))
        self._views[size] = (self._memory[:square].reshape(size, size), *vectors)


def _loaded() -> ctypes.CDLL:
    library = _built()
    try:
        return ctypes.CDLL(str(library))
    except OSError:  # damaged, or made where other libraries are
        library.unlink()
        return ctypes.CDLL(str(_built()))


def _built() -> Path:
    """The library, compiled now unless it was before."""
    compiler = _compiler()
    source = b"".join(path.read_bytes() for path in (SOURCE, *INCLUDED))
    flags = (*FLAGS, *_processor())
    kind = "\0".join([*compiler, *flags, platform.machine(), platform.system(), platform.libc_ver()[1]])
    name = hashlib.sha256(source + kind.encode()).hexdigest()[:24]
    folder = _folder()
    library = folder / f"qp-{name}.so"
    if not _ours(library):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            fresh = Path(place) / "qp.so"
            command = [*compiler, *flags, "-o", str(fresh), "-x", "c", str(SOURCE), "-lm"]
            done = subprocess.run(command, capture_output=True, errors="replace", timeout=LONGEST_COMPILATION, cwd=place)
            if done.returncode:
                raise OSError(f"{shlex.join(compiler)} failed: {done.stderr.strip()[-300:]}")
            fresh.chmod(0o700)  # whatever the umask: nobody else may write to it
            fresh.replace(library)  # whoever else builds it at the same time builds the same
    return library


def _processor() -> tuple[str, ...]:
    """What this processor can do that not all of its kind can: four numbers at a time. It changes no result."""
    try:
        told = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ()
    flags = next((line for line in told.splitlines() if line.startswith("flags")), "").split()
    return ("-mavx2",) if "avx2" in flags and platform.machine() == "x86_64" else ()


def _compiler() -> list[str]:
    """The command of the compiler: that of CC, or the first of the usual ones."""
    if sys.platform == "darwin" and subprocess.run(["xcode-select", "-p"], capture_output=True).returncode:
        raise OSError("the command line tools are not installed")  # cc is there, but opens a window
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang", "g++"):
        words = shlex.split(command) if command else []
        if words and shutil.which(words[0]):
            return [str(shutil.which(words[0])), *words[1:]]
    raise OSError("there is no C compiler")


def _folder() -> Path:
    chosen = os.environ.get("COMPILE_INSPECT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = ((Path(chosen) if chosen else base / "compile-inspect") / "kernels").resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _ours(folder):
        raise OSError(f"{folder} belongs to somebody else, or others may write to it")
    return folder


def _ours(path: Path) -> bool:
    """Whether a file is there that only this user, or the administrator, can have written."""
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
