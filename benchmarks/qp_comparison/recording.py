"""The quadratic programs of real runs, and how long these runs take with each method."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from solver_timing.solving import minimize_arguments

from nonsmooth import Result, minimize
from nonsmooth.native import load
from nonsmooth.qp import Product
from nonsmooth.qp.native import MAX_NATIVE_ENTRIES
from nonsmooth.qp.program import Program
from nonsmooth.qp.solver import Session
from problems import PUBLISHED, UNCONSTRAINED
from problems.published import many_constraints


@dataclass(frozen=True)
class Recorded:
    """A program, what it began with, and the number of its matrix."""

    program: Program
    start: Any
    matrix: int


def published(name: str) -> tuple[Any, Any, dict[str, Any]]:
    function, start, options = minimize_arguments(PUBLISHED[name]())
    return function, start, {**options, "compile": "never"}


def case(name: str) -> tuple[Any, Any, dict[str, Any]]:
    problem = UNCONSTRAINED[name]
    return problem.function, problem.initial(), {"compile": "never"}


def constraints(count: int) -> tuple[Any, Any, dict[str, Any]]:
    function, start, options = minimize_arguments(many_constraints(count))
    return function, start, {**options, "compile": "never"}


PROBLEMS: dict[str, Callable[[], tuple[Any, Any, dict[str, Any]]]] = {
    **{
        name: lambda name=name: published(name)  # type: ignore[misc]
        for name in ("A1r", "A3", "B2", "B3", "B3big", "C1", "C1big", "C2", "C3", "D3u")
    },
    **{name: lambda name=name: case(name) for name in ("goffin", "maxquad", "max_hilbert")},  # type: ignore[misc]
    "MC100": lambda: constraints(100),
}


def run(name: str) -> Result:
    """One run, with the method that is switched on."""
    function, start, options = PROBLEMS[name]()
    return minimize(function, start, **options)


@contextmanager
def python_method() -> Iterator[None]:
    """Runs inside use no native library."""
    with mock.patch.dict(os.environ, NONSMOOTH_NATIVE="0"):
        load.cache_clear()
        yield
    load.cache_clear()


def record(name: str) -> tuple[list[Recorded], Result, int]:
    """All programs of a run except those with a closed form; the run; and how many were left out because they are too large.

    Models are kept out of the native workspace, which shows nobody its programs; these are solved by the native method.
    """
    programs: list[Recorded] = []
    matrices: dict[int, tuple[int, Any]] = {}
    too_large = 0
    solve = Session._solve

    def hook(session: Session, linear: Any, lower: Any, upper: Any, start: Any, fixed_row: Any = None) -> Any:
        nonlocal too_large
        matrix, simplex, size = session._matrix, session._simplex, len(linear)
        if session._rest is None and not (size <= 2 and simplex <= 1 and size - simplex <= 1):
            if isinstance(matrix, Product) or size > MAX_NATIVE_ENTRIES:
                too_large += 1
            else:
                number, _ = matrices.setdefault(id(matrix), (len(matrices), matrix))  # held, so that its id stays its own
                arrays = (np.array(part) for part in (linear, lower, upper))
                begin = None if start is None else np.array(start)
                programs.append(Recorded(Program(matrix, *arrays, simplex, fixed_row), begin, number))
        return solve(session, linear, lower, upper, start, fixed_row)

    with mock.patch.object(Session, "_solve", hook), mock.patch("nonsmooth.step.model.fits", lambda metric, total: False):
        result = run(name)
    return programs, result, too_large


def sample(programs: list[Recorded], windows: int, length: int) -> list[Recorded]:
    """Windows of successive programs, spread evenly over the run; all of them where they are few."""
    if len(programs) <= windows * length:
        return programs
    begins = np.linspace(0, len(programs) - length, windows).astype(int)
    return [program for begin in begins for program in programs[begin : begin + length]]
