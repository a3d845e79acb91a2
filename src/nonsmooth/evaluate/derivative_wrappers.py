"""Wrappers of derivatives that add bounds, convert units or measure time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate.bounds import Bounds
from nonsmooth.evaluate.scaling import Scales
from nonsmooth.evaluate.trial import Derivatives
from nonsmooth.report.clock import Span

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class DerivativesWithBounds:
    """Gradients of the user's constraints and of the bounds, in the evaluator's order."""

    def __init__(self, inner: Derivatives, bounds: Bounds, equalities: int, count: int) -> None:
        self._inner, self._bounds = inner, bounds
        first, second = equalities, equalities + len(bounds.fixed)
        self._parts = (
            slice(0, first),
            slice(first, second),
            slice(second, second + count - equalities),
            slice(second + count - equalities, None),
        )

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        equalities, fixed, inequalities, sides = (constraints[part] for part in self._parts)
        gradient = self._inner.combination(objective, np.concatenate([equalities, inequalities])).copy()
        bounds = self._bounds
        np.add.at(gradient, bounds.fixed, fixed)
        np.add.at(gradient, bounds.above, sides[: len(bounds.above)])
        np.add.at(gradient, bounds.below, -sides[len(bounds.above) :])
        return gradient

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of all constraints."""
        gradient, jacobian = self._inner.full()
        first = self._parts[0].stop
        rows = [jacobian[:first], self._bounds.equality_rows(), jacobian[first:], self._bounds.inequality_rows()]
        return gradient, np.concatenate(rows)


class ScaledDerivatives:
    """Gradients in the solver's units."""

    def __init__(self, inner: Derivatives, scales: Scales) -> None:
        self._inner, self._scales = inner, scales

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        scales = self._scales
        gradient = self._inner.combination(objective * scales.objective, constraints * scales.constraints)
        return gradient if scales.variables is None else gradient * scales.variables

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        scales, (gradient, jacobian) = self._scales, self._inner.full()
        gradient, jacobian = gradient * scales.objective, jacobian * scales.constraints[:, None]
        return (gradient, jacobian) if scales.variables is None else (gradient * scales.variables, jacobian * scales.variables)


class TimedDerivatives:
    """Gradients whose time counts for phases of the run."""

    __slots__ = ("_derivative_phases", "_inner")

    def __init__(self, inner: Derivatives, spans: tuple[Span, Span]) -> None:
        self._inner, self._derivative_phases = inner, spans

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        with self._derivative_phases[0]:
            return self._inner.combination(objective, constraints)

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""
        with self._derivative_phases[1]:
            return self._inner.full()
