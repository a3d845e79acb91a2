"""Models in compiled code: their rows, the products of these, and their steps, one call each.

A run has one bench. The model that lies on it is the last one that was put there; an older one that is asked again is put
there anew. What both have in common is not computed twice.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.clock import Clock, Phase
from nonsmooth.qp.kernel import MOST, Compiled, address, linear_algebra

if TYPE_CHECKING:
    from nonsmooth.linearisations import Lines

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

WHOLE, TRIANGLE, APART = 0, 1, 2
"""How an inverse Hessian is given: as a matrix, as its upper triangle, or as what was added to a multiple of the identity."""
LOCALITY = 1e-3
"""A linearisation from a point at distance r counts as lying LOCALITY·r² too low at least, whatever it says itself."""

_versions = count(1)


def new_version() -> int:
    """A number that no other inverse Hessian has, nor this one as it was."""
    return next(_versions)


class Metric(NamedTuple):
    """An inverse Hessian as compiled code sees it."""

    kind: int
    version: int
    array: Matrix
    gamma: float
    pairs: int


class Here(NamedTuple):
    """The point of a model: x, f there, its gradient and the key of that, then the constraints."""

    x: Vector
    f: float
    gradient: Vector
    key: int
    equalities: int
    values: Vector
    jacobian: Matrix
    first_key: int
    multipliers: Vector | None
    """Of an earlier step, where there was one."""


class Further(NamedTuple):
    """Further linearisations of constraints: which of them, on which side, and the multipliers of an earlier step."""

    lines: Lines
    owners: NDArray[np.intp]
    signs: Vector
    weights: Vector


class Found(NamedTuple):
    """A step; see `Step`."""

    y: Vector
    direction: Vector
    gradient: Vector
    objective_gradient: Vector
    multipliers: Vector
    change: float
    violation: float
    error: float


class Bench:
    """Memory for the models of one run, all with so many variables; not for several threads at once."""

    def __init__(self, functions: Compiled, size: int) -> None:
        libraries = linear_algebra()
        assert libraries is not None
        self.functions, self.size = functions, size
        self.pointer = functions.new_bench(size, *libraries)
        if self.pointer is None:
            raise MemoryError(f"there is no memory for models of {size} variables")
        weakref.finalize(self, functions.free_bench, self.pointer).atexit = False
        self.holds = 0
        """The number of the model that lies on it."""


class Laid:
    """A model that can be put on a bench. The arrays it is made of must not change as long as it is used."""

    __slots__ = ("_arguments", "_bench", "_clock", "_held", "_last", "_number", "_own", "_total")

    def __init__(
        self, bench: Bench, clock: Clock, metric: Metric, here: Here, cuts: tuple[Lines | None, Vector], further: Further | None
    ) -> None:
        self._bench, self._clock = bench, clock
        jacobian, values = np.ascontiguousarray(here.jacobian), np.ascontiguousarray(here.values)
        x, gradient = np.ascontiguousarray(here.x), np.ascontiguousarray(here.gradient)
        self._own = own = len(values)
        multipliers = here.multipliers if here.multipliers is not None and len(here.multipliers) == own and own else None
        if multipliers is not None:
            multipliers = np.ascontiguousarray(multipliers)
        lines, weights = cuts
        # As long as these are held, their addresses are theirs.
        self._held: Sequence[object] = (metric, x, gradient, values, jacobian, multipliers, lines, weights, further)
        self._arguments = (
            bench.pointer, metric.version, metric.kind, address(metric.array) if metric.array.size else None, metric.gamma,
            metric.pairs, address(x), here.f, address(gradient), here.key, *_lines(lines, weights), own, here.equalities,
            address(values) if own else None, address(jacobian) if own else None, here.first_key,
            None if multipliers is None else address(multipliers),
            *(_NO_LINES if further is None else _lines(further.lines, further.weights)),
            None if further is None else address(further.owners), None if further is None else address(further.signs), LOCALITY,
        )  # fmt: skip
        self._total = 1 + own + (0 if lines is None else len(lines.keys)) + (0 if further is None else len(further.owners))
        self._last: tuple[Vector, int] | None = None
        self._number = new_version()
        self._put()

    def _put(self) -> None:
        if not self._bench.functions.build(*self._arguments):
            self._bench.holds = 0
            raise MemoryError(f"there is no memory for a model of {self._total} gradients")
        self._bench.holds = self._number

    def step(self, weight: float, asked: Vector | None, start: Vector | None, limit: float) -> Found | None:
        """The step for a penalty weight, or None where the program is better left to others.

        `asked` replaces the values of the constraints in the program; `start` is where it begins, an answer for the weight
        `limit`, None at the first.
        """
        bench, total, own, size = self._bench, self._total, self._own, self._bench.size
        if bench.holds != self._number:
            self._put()
        out = np.empty(total + 3 * size + own + 5)
        place = address(out)
        asked = None if asked is None or not own else np.ascontiguousarray(asked)
        values = None if asked is None else address(asked)
        found = bench.functions.step(bench.pointer, values, self._begin(start), limit, weight, place)
        change, violation, error, _, seconds = out[-5:].tolist()
        self._clock.credit(Phase.QP, seconds)
        if not found:
            return None
        a, b, c, d = total + size, total + 2 * size, total + 3 * size, total + 3 * size + own
        self._last = (out[:total], place)
        return Found(self._last[0], out[total:a], out[a:b], out[b:c], out[c:d], change, violation, error)

    def reference(self, weight: float, start: Vector | None, limit: float) -> float | None:
        """Predicted violation of the step that looks at nothing else, or None where that is better left to others."""
        bench = self._bench
        if bench.holds != self._number:
            self._put()
        found = bench.functions.reference(bench.pointer, self._begin(start), limit, weight)
        return found if found >= 0 else None

    def _begin(self, start: Vector | None) -> int | None:
        if start is None:
            return None
        return self._last[1] if self._last is not None and self._last[0] is start else address(start)


_NO_LINES = (0, None, None, None, None, None)


def _lines(lines: Lines | None, weights: Vector) -> tuple[int | None, ...]:
    if lines is None or not len(lines.keys):
        return _NO_LINES
    # What is given here is held by whoever calls this, and lies one behind the other.
    return (len(lines.keys), *map(address, (lines.points, lines.rows, lines.values, lines.keys, weights)))


def fits(metric: Metric | None, total: int) -> bool:
    """Whether a bench is good for a model with so many gradients and such an inverse Hessian."""
    return metric is not None and total <= MOST and linear_algebra() is not None
