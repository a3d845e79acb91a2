"""Models in compiled code: their rows, the products of these, and their steps, one call each.

A run has one workspace. The model in it is the last one that was put there; an older one that is asked again is put
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
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.kinks.linearizations import Lines

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

WHOLE, TRIANGLE, APART = 0, 1, 2
"""How an inverse Hessian is given: as a matrix, as its upper triangle, or as what was added to a multiple of the identity."""

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


class CurrentPoint(NamedTuple):
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


class ExtraRows(NamedTuple):
    """Further linearizations of constraints: which of them, on which side, and the multipliers of an earlier step."""

    lines: Lines | None
    owners: NDArray[np.intp]
    signs: Vector
    weights: Vector


class NativeStep(NamedTuple):
    """A step; see `Step`."""

    y: Vector
    direction: Vector
    gradient: Vector
    objective_gradient: Vector
    multipliers: Vector
    change: float
    violation: float
    error: float


class Workspace:
    """Memory for the models of one run, all with so many variables; not for several threads at once."""

    def __init__(self, functions: Functions, size: int) -> None:
        libraries = linear_algebra()
        assert libraries is not None
        self.functions, self.size = functions, size
        self.pointer = functions.new_workspace(size, *libraries)
        if self.pointer is None:
            raise MemoryError(f"there is no memory for models of {size} variables")
        weakref.finalize(self, functions.free_workspace, self.pointer).atexit = False
        self.holds = 0
        """The number of the model in it."""


class NativeModel:
    """A model that can be put into a workspace. The arrays it is made of must not change as long as it is used."""

    __slots__ = ("_arguments", "_clock", "_held", "_last", "_number", "_own", "_total", "_workspace")

    def __init__(
        self,
        workspace: Workspace,
        clock: Clock,
        metric: Metric,
        here: CurrentPoint,
        cuts: Lines | None,
        weights: Vector,
        further: ExtraRows | None,
    ) -> None:
        self._workspace, self._clock = workspace, clock
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
            workspace.pointer, metric.version, metric.kind, metric.place, metric.gamma, metric.pairs,
            x, here.f, gradient, here.keys[0], *kept, own, here.equalities, values, jacobian, here.keys[1],
            None if multipliers is None else address(multipliers), *rest, *owners, THRESHOLDS.locality,
        )  # fmt: skip
        self._total = 1 + own + kept[0] + rest[0]
        self._last: tuple[Vector, int] | None = None
        self._number = new_version()
        self._put()

    def _put(self) -> None:
        self._workspace.holds = 0  # whatever comes in between
        if not self._workspace.functions.build(*self._arguments):
            raise MemoryError(f"there is no memory for a model of {self._total} gradients")
        self._workspace.holds = self._number

    def step(self, weight: float, start: Vector | None, limit: float) -> NativeStep | None:
        """The step for a penalty weight, or None where the program is better left to others.

        `start` is where the program begins, an answer for the weight `limit`, None at the first.
        """
        workspace, total, own, size = self._workspace, self._total, self._own, self._workspace.size
        if workspace.holds != self._number:
            self._put()
        out = np.empty(total + 3 * size + own + 5)
        place = address(out)
        found = workspace.functions.step(workspace.pointer, self._begin(start), limit, weight, place)
        change, violation, error, _, seconds = out[-5:].tolist()
        self._clock.credit(Phase.QP, seconds)
        if not found:
            return None
        a, b, c, d = total + size, total + 2 * size, total + 3 * size, total + 3 * size + own
        self._last = (out[:total], place)
        return NativeStep(self._last[0], out[total:a], out[a:b], out[b:c], out[c:d], change, violation, error)

    def reference(self, weight: float, start: Vector | None, limit: float) -> float | None:
        """Predicted violation of the step that looks at nothing else, or None where that is better left to others."""
        workspace = self._workspace
        if workspace.holds != self._number:
            self._put()
        found = workspace.functions.reference(workspace.pointer, self._begin(start), limit, weight)
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
    """Whether a workspace is good for a model with so many gradients and such an inverse Hessian."""
    return metric is not None and total <= MOST and linear_algebra() is not None
