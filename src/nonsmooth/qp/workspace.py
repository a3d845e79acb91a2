"""Models in compiled code: one call builds a model with its rows and their products, one call computes a step.

A run has one workspace. It contains the model that was loaded last; an older model is loaded again when it is used. Data that
both have in common are not recomputed.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import Functions, address, linear_algebra
from nonsmooth.qp.native import MAX_NATIVE_ENTRIES
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.kinks.linearizations import LinearizationTable

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Keys = NDArray[np.int64]

FULL_MATRIX, UPPER_TRIANGLE, LOW_RANK = 0, 1, 2
"""The storage of an inverse Hessian: a matrix, its upper triangle, or a multiple of the identity with low-rank corrections."""

_versions = count(1)


def new_version() -> int:
    """A number that no inverse Hessian or model has had before."""
    return next(_versions)


class Metric(NamedTuple):
    """An inverse Hessian for compiled code."""

    kind: int
    version: int
    array: Matrix
    address: int | None
    """The address of the array."""
    gamma: float
    pairs: int


class CurrentPoint(NamedTuple):
    """The point of a model."""

    f: float
    keys: tuple[int, int]
    """The keys of the gradient of f and of the first constraint; those of the other constraints follow consecutively."""
    equalities: int
    own: int
    """The number of constraints."""
    addresses: tuple[int, int, int, int]
    """The addresses of x, the gradient of f, the constraints and their gradients."""
    multipliers: Vector | None
    """The multipliers of an earlier step, if there was one."""
    owner: object
    """Keeps the arrays at these addresses alive."""


class ExtraRows(NamedTuple):
    """Further linearizations of constraints: their constraints, signs, and the multipliers of an earlier step."""

    table: LinearizationTable | None
    owners: NDArray[np.intp]
    signs: Vector
    weights: Vector


class NativeStep(NamedTuple):
    """A step from compiled code; see `Step`."""

    y: Vector
    direction: Vector
    gradient: Vector
    objective_gradient: Vector
    multipliers: Vector
    change: float
    violation: float
    error: float


class Workspace:
    """Memory for the models of one run, all with the same number of variables; not thread-safe."""

    def __init__(self, functions: Functions, size: int) -> None:
        libraries = linear_algebra()
        assert libraries is not None
        self.functions, self.size = functions, size
        self.pointer = functions.new_workspace(size, *libraries)
        if self.pointer is None:
            raise MemoryError(f"not enough memory for models with {size} variables")
        weakref.finalize(self, functions.free_workspace, self.pointer).atexit = False
        self.loaded_model = 0
        """The number of the model in the workspace."""


class NativeModel:
    """A model that can be loaded into a workspace. Its arrays must not change while it is used."""

    __slots__ = ("_arguments", "_clock", "_last", "_number", "_own", "_references", "_total", "_workspace")

    def __init__(
        self,
        workspace: Workspace,
        clock: Clock,
        metric: Metric,
        point: CurrentPoint,
        cuts: LinearizationTable | None,
        weights: Vector,
        extra: ExtraRows | None,
    ) -> None:
        self._workspace, self._clock = workspace, clock
        self._own = own = point.own
        multipliers = None
        if point.multipliers is not None and own:
            multipliers = np.ascontiguousarray(point.multipliers, dtype=np.float64)
        # These references keep the addresses below valid.
        self._references: Sequence[object] = (metric, point, multipliers, cuts, weights, extra)
        x, gradient, values, jacobian = point.addresses
        cut_table, extra_table = _table_arguments(cuts, weights), _EMPTY_TABLE
        owners: tuple[int, int] | tuple[None, None] = (None, None)
        if extra is not None:
            extra_table = _table_arguments(extra.table, extra.weights)
            owners = address(extra.owners), address(extra.signs)
        self._arguments = (
            workspace.pointer, metric.version, metric.kind, metric.address, metric.gamma, metric.pairs,
            x, point.f, gradient, point.keys[0], *cut_table, own, point.equalities, values, jacobian, point.keys[1],
            None if multipliers is None else address(multipliers), *extra_table, *owners, THRESHOLDS.locality,
        )  # fmt: skip
        self._total = 1 + own + cut_table[0] + extra_table[0]
        self._last: tuple[Vector, int] | None = None
        self._number = new_version()
        self._load()

    def _load(self) -> None:
        self._workspace.loaded_model = 0  # in case of an exception
        if not self._workspace.functions.build(*self._arguments):
            raise MemoryError(f"not enough memory for a model with {self._total} gradients")
        self._workspace.loaded_model = self._number

    def step(self, weight: float, start: Vector | None, limit: float) -> NativeStep | None:
        """The step for a penalty weight, or None if compiled code cannot solve the program accurately.

        `start` warm-starts the program with a solution for the weight `limit`; None for the first program.
        """
        workspace, total, own, size = self._workspace, self._total, self._own, self._workspace.size
        if workspace.loaded_model != self._number:
            self._load()
        out = np.empty(total + 3 * size + own + 5)
        out_address = address(out)
        solved = workspace.functions.step(workspace.pointer, self._start_address(start), limit, weight, out_address)
        change, violation, error, _, seconds = out[-5:].tolist()
        self._clock.credit(Phase.QP, seconds)
        if not solved:
            return None
        a, b, c, d = total + size, total + 2 * size, total + 3 * size, total + 3 * size + own
        self._last = (out[:total], out_address)
        return NativeStep(self._last[0], out[total:a], out[a:b], out[b:c], out[c:d], change, violation, error)

    def reference(self, weight: float, start: Vector | None, limit: float) -> float | None:
        """Predicted violation of the step that minimizes the violation alone, or None if compiled code cannot compute it."""
        workspace = self._workspace
        if workspace.loaded_model != self._number:
            self._load()
        violation = workspace.functions.reference(workspace.pointer, self._start_address(start), limit, weight)
        return violation if violation >= 0 else None

    def _start_address(self, start: Vector | None) -> int | None:
        if start is None:
            return None
        return self._last[1] if self._last is not None and self._last[0] is start else address(start)


_TableArguments = tuple[int, int | None, int | None, int | None, int | None, int | None]
_EMPTY_TABLE: _TableArguments = (0, None, None, None, None, None)


def _table_arguments(table: LinearizationTable | None, weights: Vector) -> _TableArguments:
    if table is None or not len(table.keys):
        return _EMPTY_TABLE
    points, values, rows, keys = table.addresses
    return len(table.keys), points, rows, values, keys, address(weights)


def fits(metric: Metric | None, total: int) -> bool:
    """Whether compiled code supports a model with this inverse Hessian and number of gradients."""
    return metric is not None and total <= MAX_NATIVE_ENTRIES and linear_algebra() is not None
