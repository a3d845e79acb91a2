"""The table printed during a run, and the summary printed after it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from nonsmooth.loop.state import State
from nonsmooth.pygranso.progress import Progress
from nonsmooth.pygranso.termination import describe
from nonsmooth.result import Point, Result

LEVEL_LABELS = ("S", "SI", "QN", "GD", "R")
"""Printed labels of the kinds of directions."""
GROUPS = (("", 1), ("penalty function", 2), ("", 1), ("violation", 2), ("line search", 3), ("stationarity", 2))
TITLES = ("iter", "mu", "value", "objective", "ineq", "eq", "sd", "evals", "t", "grads", "value")
LINES_BETWEEN_HEADERS = 20


@dataclass
class Table:
    """Prints one line per iteration to standard output."""

    frequency: int = 1
    width: int = 14
    """Width of the columns with the values of the penalty function and the objective."""
    ascii: bool = False
    _lines: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Fix the widths of all columns."""
        wide = self.width
        self._widths = (6, 9, wide, wide, 9, 9, 2, 5, 9, 5, 9)

    def show(self, state: State, progress: Progress) -> None:
        """Print an iterate if the print frequency selects it."""
        if progress.iteration == 0:
            at = state.current
            self._print(
                f"nonsmooth: {len(at.x)} variables, {len(at.c) - at.equalities} inequalities, {at.equalities} equalities"
            )
        if progress.iteration % self.frequency:
            return
        if self._lines % LINES_BETWEEN_HEADERS == 0:
            self._header()
        self._lines += 1
        self._print(self._line(self._cells(progress)))

    def finish(self, result: Result, code: int) -> None:
        """Print the final points and the termination code."""
        if self._lines:
            self._print(self._rule())
        self._print("F: final iterate, B: best feasible point, MF: most feasible point")
        constrained = len(result.state.current.c) > 0
        points = (("F", result.final), ("B", result.best), ("MF", result.most_feasible if constrained else None))
        for name, point in points:
            if point is not None:
                self._print(self._line(self._point(name, point)))
        if self._lines:
            self._print(self._rule())
        self._print(f"iterations: {result.iterations}, function evaluations: {result.evaluations}")
        self._print(f"certificate: {result.certificate}")
        if result.exception is not None:
            self._print(f"exception: {type(result.exception).__name__}: {result.exception}")
        self._print(f"termination code: {code}, {describe(code)}")

    def _cells(self, progress: Progress) -> tuple[str, ...]:
        start = progress.iteration == 0
        constrained = progress.inequality_violation is not None or progress.equality_violation is not None
        level = LEVEL_LABELS[2 if progress.level == 0 and not constrained else progress.level]
        return (
            str(progress.iteration),
            _number(progress.mu, self._widths[1]),
            _number(progress.penalty, self.width),
            _number(progress.f, self.width),
            _number(progress.inequality_violation, self._widths[4]),
            _number(progress.equality_violation, self._widths[5]),
            "-" if start else level,
            str(progress.evaluations),
            _number(progress.step, self._widths[8]),
            str(progress.gradients),
            _number(progress.stationarity, self._widths[10]),
        )

    def _point(self, name: str, point: Point) -> tuple[str, ...]:
        violations = (
            None if point.inequalities is None else point.inequality_violation,
            None if point.equalities is None else point.equality_violation,
        )
        narrow = self._widths[4]
        return (
            name, "", "", _number(point.f, self.width), *(_number(value, narrow) for value in violations),
            *[""] * 5,
        )  # fmt: skip

    def _header(self) -> None:
        self._print(self._rule())
        widths = iter(self._widths)
        groups = []
        for title, columns in GROUPS:
            width = sum(next(widths) for _ in range(columns)) + columns - 1
            groups.append(title[:width].center(width))
        self._print(f" {self._bar} ".join(groups).rstrip())
        self._print(self._line(TITLES))
        self._print(self._rule())

    def _line(self, cells: tuple[str, ...]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True)]
        groups, first = [], 0
        for _, columns in GROUPS:
            groups.append(" ".join(padded[first : first + columns]))
            first += columns
        return f" {self._bar} ".join(groups).rstrip()

    def _rule(self) -> str:
        total = sum(self._widths) + (len(self._widths) - len(GROUPS)) + 3 * (len(GROUPS) - 1)
        return ("-" if self.ascii else "─") * total

    @property
    def _bar(self) -> str:
        return "|" if self.ascii else "│"

    def _print(self, line: str) -> None:
        try:
            print(line)
        except UnicodeEncodeError:  # an old terminal: continue with ASCII characters
            self.ascii = True
            print(line.encode("ascii", "replace").decode())
        sys.stdout.flush()


def _number(value: float | None, width: int) -> str:
    """A number with as many digits as fit.

    >>> _number(0.0857864376, 9), _number(-1.5e-12, 9), _number(None, 9), _number(123456.0, 9)
    ('0.0857864', '-1.50e-12', '-', '123456.00')
    """
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 10 ** (width - 3):
        whole = len(f"{abs(value):.0f}") + (value < 0) + 1
        return f"{value:.{max(0, min(width - whole, 12))}f}"[:width]
    return f"{value:.{max(0, min(width - 6 - (value < 0), 12))}e}" if abs(value) < float("inf") else str(value)
