"""The pair (s, y) that an accepted step teaches, damped where its curvature is not positive enough."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.form import Form
from nonsmooth.qp.workspace import Metric

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Outcome(Enum):
    """What an update did."""

    UPDATED = "the matrix was updated"
    SCALED = "the matrix was scaled and updated"
    NOT_POSITIVE = "skipped: the curvature along the step is not positive"
    NOT_FINITE = "skipped: the update would not be finite"
    KINKED = "skipped: the gradient of a constraint has jumped, which tells nothing about curvature"


class InverseHessian(Protocol):
    """An approximation of the inverse Hessian that can be applied and updated."""

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> Form:
        """The matrix of a quadratic program over rows of gradients; `keys` tell which of them are those of earlier calls."""

    def metric(self) -> Metric | None:
        """The matrix as compiled code can use it; None where it has no form for that."""

    @property
    def size(self) -> int:
        """Number of variables."""

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """Solves systems with the rows and columns of H that belong to some variables."""

    def update(self, pair: Curvature) -> Outcome:
        """Learn from one step."""

    def reset(self) -> None:
        """Begin anew."""

    def forget_products(self) -> None:
        """Compute products of rows anew: what is remembered may differ in rounding from what a continued run computes."""

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it, as arrays and numbers."""

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""


class Curvature(NamedTuple):
    """A step s, the change y of the gradient along it, their product, and whether y was damped."""

    s: Vector
    y: Vector
    product: float
    damped: bool = False


def limit_growth(pair: Curvature, product: Vector, fraction: float) -> Curvature:
    """The pair with s moved toward H·y (`product`) so that s·y ≥ fraction · y·H·y.

    Where the gradient jumps across a kink, y can be long and nearly orthogonal to s; as it is, the pair would
    blow the matrix up along s.
    """
    expected = float(pair.y @ product)
    if not pair.product < fraction * expected or not expected > 0:
        return pair
    theta = (1.0 - fraction) * expected / (expected - pair.product)
    s = theta * pair.s + (1.0 - theta) * product
    return Curvature(s, pair.y, theta * pair.product + (1.0 - theta) * expected, damped=True)


def curvature_pair(s: Vector, y: Vector, hessian_step: Vector | None, damping: float) -> Curvature:
    """The pair for an update; y is moved toward B·s (B = H⁻¹) so that s·y ≥ damping · s·B·s.

    `hessian_step` is B·s. It costs nothing where s = −t·H·r, for then B·s = −t·r. None: no damping.

    >>> curvature_pair(np.array([1.0, 0.0]), np.array([-1.0, 0.0]), np.array([2.0, 0.0]), 0.2).product
    0.4
    """
    product = float(s @ y)
    if hessian_step is None or damping == 0.0:
        return Curvature(s, y, product)
    expected = float(s @ hessian_step)
    if not product < damping * expected or not expected > 0:
        return Curvature(s, y, product)
    theta = (1.0 - damping) * expected / (expected - product)
    damped = theta * y + (1.0 - theta) * hessian_step
    return Curvature(s, damped, theta * product + (1.0 - theta) * expected, damped=True)
