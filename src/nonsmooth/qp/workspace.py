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

from nonsmooth.native import Functions, address, linear_algebra
from nonsmooth.qp.native import MOST
from nonsmooth.report.clock import Clock, Phase

if TYPE_CHECKING:
    from nonsmooth.kinks.linearizations import Lines

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

WHOLE, TRIANGLE, APART = 0, 1, 2
"""How an inverse Hessian is given: as a matrix, as its upper triangle, or as what was added to a multiple of the identity."""
LOCALITY = 1e-3
"""A linearization from a point at distance r counts as lying LOCALITY·r² too low at least, whatever it says itself."""

_versions = count(1)


def new_version() -> int:
    """A number that no other inverse Hessian has, nor this one as it was."""
    return next(_versions)


class Metric(NamedTuple):
    """An inverse Hessian as compiled code sees it."""

    kind: int
    version: int
    array: Matrix
    place: int | None
    """Where the array lies."""
    gamma: float
    pairs: int


class Here(NamedTuple):
    """The point of a model."""

    f: float
    keys: tuple[int, int]
    """That of the gradient of f, and that of the first constraint; those of the others follow it."""
    equalities: int
    own: int
    """How many constraints there are."""
    places: tuple[int, int, int, int]
    """Where x, the gradient of f, the constraints and their gradients lie."""
    multipliers: Vector | None
    """Of an earlier step, where there was one."""
    holder: object
    """Holds what lies there."""


class Further(NamedTuple):
    """Further linearizations of constraints: which of them, on which side, and the multipliers of an earlier step."""

    lines: Lines | None
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

    def __init__(self, functions: Functions, size: int) -> None:
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
        self,
        bench: Bench,
        clock: Clock,
        metric: Metric,
        here: Here,
        cuts: Lines | None,
        weights: Vector,
        further: Further | None,
    ) -> None:
        self._bench, self._clock = bench, clock
        self._own = own = here.own
        multipliers = None if here.multipliers is None or not own else np.ascontiguousarray(here.multipliers, dtype=np.float64)
        # As long as these are held, their addresses are theirs.
        self._held: Sequence[object] = (metric, here, multipliers, cuts, weights, further)
        x, gradient, values, jacobian = here.places
        kept, rest = _lines(cuts, weights), _NO_LINES
        owners: tuple[int, int] | tuple[None, None] = (None, None)
        if further is not None:
            rest, owners = _lines(further.lines, further.weights), (address(further.owners), address(further.signs))
        self._arguments = (
            bench.pointer, metric.version, metric.kind, metric.place, metric.gamma, metric.pairs,
            x, here.f, gradient, here.keys[0], *kept, own, here.equalities, values, jacobian, here.keys[1],
            None if multipliers is None else address(multipliers), *rest, *owners, LOCALITY,
        )  # fmt: skip
        self._total = 1 + own + kept[0] + rest[0]
        self._last: tuple[Vector, int] | None = None
        self._number = new_version()
        self._put()

    def _put(self) -> None:
        self._bench.holds = 0  # whatever comes in between
        if not self._bench.functions.build(*self._arguments):
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
        asked = None if asked is None or not own else np.ascontiguousarray(asked, dtype=np.float64)
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


_Where = tuple[int, int | None, int | None, int | None, int | None, int | None]
_NO_LINES: _Where = (0, None, None, None, None, None)


def _lines(lines: Lines | None, weights: Vector) -> _Where:
    if lines is None or not len(lines.keys):
        return _NO_LINES
    points, values, rows, keys = lines.places
    return len(lines.keys), points, rows, values, keys, address(weights)


def fits(metric: Metric | None, total: int) -> bool:
    """Whether a bench is good for a model with so many gradients and such an inverse Hessian."""
    return metric is not None and total <= MOST and linear_algebra() is not None
