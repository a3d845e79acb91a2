"""The quasi-Newton pair (s, y) of an accepted step, damped if its curvature is too small."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.quadratic_form import QuadraticForm
from nonsmooth.qp.workspace import Metric

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class UpdateOutcome(Enum):
    """The outcome of a quasi-Newton update."""

    UPDATED = "the matrix was updated"
    SCALED = "the matrix was scaled and updated"
    NOT_POSITIVE = "skipped: the curvature along the step is not positive"
    NOT_FINITE = "skipped: the update would not be finite"
    KINKED = "skipped: the gradient of a constraint jumped, which is not curvature"


class InverseHessian(Protocol):
    """An approximation of the inverse Hessian that can be applied and updated."""

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> QuadraticForm:
        """The quadratic form over rows of gradients; `keys` identify rows of earlier calls."""

    def metric(self) -> Metric | None:
        """The matrix for compiled code; None if compiled code does not support it."""

    @property
    def size(self) -> int:
        """Number of variables."""

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """A solver for systems with the principal submatrix of H that belongs to some variables."""

    def update(self, pair: CurvaturePair) -> UpdateOutcome:
        """Update with one pair."""

    def reset(self) -> None:
        """Reset to the initial matrix."""

    def forget_products(self) -> None:
        """Discard cached products of rows: they may differ in rounding from what a resumed run computes."""

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it, as arrays and numbers."""

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore from the result of `arrays`."""


class CurvaturePair(NamedTuple):
    """A step s, the change y of the gradient along it, their product, and whether y was damped."""

    s: Vector
    y: Vector
    product: float
    damped: bool = False


def limit_growth(pair: CurvaturePair, product: Vector, fraction: float) -> CurvaturePair:
    """The pair with s moved toward H·y (`product`) so that s·y ≥ fraction · y·H·y.

    If the gradient jumps across a kink, y can be long and nearly orthogonal to s; without this change the update would make
    the matrix very large along s.
    """
    expected = float(pair.y @ product)
    if not pair.product < fraction * expected or not expected > 0:
        return pair
    theta = (1.0 - fraction) * expected / (expected - pair.product)
    s = theta * pair.s + (1.0 - theta) * product
    return CurvaturePair(s, pair.y, theta * pair.product + (1.0 - theta) * expected, damped=True)


def curvature_pair(s: Vector, y: Vector, hessian_step: Vector | None, damping: float) -> CurvaturePair:
    """The pair for an update; y is moved toward B·s (B = H⁻¹) so that s·y ≥ damping · s·B·s.

    `hessian_step` is B·s; it is free if s = −t·H·r, since then B·s = −t·r. None means no damping.

    >>> curvature_pair(np.array([1.0, 0.0]), np.array([-1.0, 0.0]), np.array([2.0, 0.0]), 0.2).product
    0.4
    """
    product = float(s @ y)
    if hessian_step is None or damping == 0.0:
        return CurvaturePair(s, y, product)
    expected = float(s @ hessian_step)
    if not product < damping * expected or not expected > 0:
        return CurvaturePair(s, y, product)
    theta = (1.0 - damping) * expected / (expected - product)
    damped = theta * y + (1.0 - theta) * hessian_step
    return CurvaturePair(s, damped, theta * product + (1.0 - theta) * expected, damped=True)
