"""A point at which the user's functions were evaluated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.native import address

if TYPE_CHECKING:
    from nonsmooth.structure import Reading

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


_serials = count()
MAX_GRADIENTS_PER_POINT = 2**24
"""Limit on the gradients of one point, for numbering them; no point has as many."""
MAX_ROWS_WITH_FULL_JACOBIAN = 4
"""Up to this number of constraints, all gradients take little longer than the gradient of a sum, and the solver asks for that
sum where it is likely to accept the point."""
MAX_CONSTRAINTS_IN_PYTHON = 7
"""NumPy sums this few numbers in the same order as Python."""


class FunctionFailed(Exception):  # noqa: N818 (the name states what happened)
    """The user's function, or the differentiation of it, raised the exception in `original`."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


def _finite(vector: Vector | Matrix) -> bool:
    """Whether all numbers are finite. Counting takes half as long as `all`."""
    return bool(np.count_nonzero(np.isfinite(vector)) == vector.size)


class Derivatives(Protocol):
    """A source of the gradients at one point."""

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c, from one backward pass."""

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and Jacobian of c."""


class Trial:
    """Values at one point, and its gradients on demand.

    `c` contains all constraints, equalities first; `equalities` is the number of equalities. Gradients are computed on
    first use and cached; `release` frees the autograd graph, after which no more can be computed. The violations that
    decide feasibility are in the user's units; the sum in the penalty function is scaled like `c`.
    """

    __slots__ = (
        "_addresses",
        "_derivatives",
        "_differentiable",
        "_gradient",
        "_jacobian",
        "_read",
        "_reading",
        "_rows_of",
        "c",
        "equalities",
        "equality_violation",
        "f",
        "finite",
        "inequality_violation",
        "serial",
        "total_violation",
        "x",
    )

    def __init__(
        self, x: Vector, f: float, c: Vector, equalities: int, derivatives: Derivatives | None, *, units: Vector | None = None
    ) -> None:
        self.x, self.f, self.c, self.equalities = x, f, c, equalities
        self.serial = self._rows_of = next(_serials)
        self._derivatives = derivatives
        self._gradient: Vector | None = None
        self._jacobian: Matrix | None = None
        self._differentiable: bool | None = None
        self._addresses: tuple[int, int, int, int] | None = None
        self._read: Callable[[], Reading | None] | None = None
        self._reading: Reading | None = None
        self.finite = isfinite(f)
        self.total_violation = self.inequality_violation = self.equality_violation = 0.0
        if len(c) == 0:
            return
        if len(c) <= MAX_CONSTRAINTS_IN_PYTHON and units is None and self._measure_in_python(c.tolist()):
            return
        self.finite = self.finite and _finite(c)
        if len(c) > equalities:
            above = np.maximum(c[equalities:], 0.0)
            self.total_violation = float(above.sum())
            self.inequality_violation = float((above if units is None else above / units[equalities:]).max())
        if equalities:
            sizes = np.abs(c[:equalities])
            self.total_violation += float(sizes.sum())
            self.equality_violation = float((sizes if units is None else sizes / units[:equalities]).max())

    def _measure_in_python(self, values: list[float]) -> bool:
        """The same for a few constraints, where a single NumPy operation would take longer than this function."""
        if not all(map(isfinite, values)):
            return False
        above = [value if value > 0.0 else 0.0 for value in values[self.equalities :]]
        sizes = [abs(value) for value in values[: self.equalities]]
        self.total_violation = sum(above) + sum(sizes)
        self.inequality_violation, self.equality_violation = max(above, default=0.0), max(sizes, default=0.0)
        return True

    @classmethod
    def stored(
        cls, x: Vector, f: float, c: Vector, equalities: int, gradient: Vector, jacobian: Matrix, *, units: Vector | None = None
    ) -> Trial:
        """A point whose gradients are already known."""
        trial = cls(x, f, c, equalities, None, units=units)
        trial._gradient, trial._jacobian = gradient, jacobian
        return trial

    def arrays(self) -> dict[str, Any]:
        """All arrays that `restored` needs."""
        values = {"x": self.x, "f": self.f, "c": self.c, "equalities": self.equalities}
        return {**values, "gradient": self.gradient, "jacobian": self.jacobian}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The expected shapes of `arrays`."""
        n, m = variables, constraints
        return {"x": (n,), "f": (), "c": (m,), "equalities": (), "gradient": (n,), "jacobian": (m, n)}

    @classmethod
    def restored(cls, arrays: dict[str, Any], units: Vector | None = None) -> Trial:
        """The point from `arrays`; `units` are the factors of the constraints."""
        x, c, gradient, jacobian = (
            np.array(arrays[name], dtype=np.float64, order="C") for name in ("x", "c", "gradient", "jacobian")
        )
        return cls.stored(x, float(arrays["f"]), c, int(arrays["equalities"]), gradient, jacobian, units=units)

    def __getstate__(self) -> dict[str, Any]:
        """Values and gradients, without the graph and without memory addresses."""
        if self._gradient is None and self._derivatives is not None:
            with suppress(Exception):  # the gradients of the copy then raise an error
                self._differentiate()
        state = {name: getattr(self, name) for name in self.__slots__}
        return {**state, "_derivatives": None, "_addresses": None, "_read": None, "_reading": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.serial = self._rows_of = next(_serials)  # distinguishes its gradients from all others of this process

    @property
    def first_keys(self) -> tuple[int, int]:
        """The key of the gradient of f, and that of the gradient of the first constraint; the others follow it."""
        return self.serial * MAX_GRADIENTS_PER_POINT, self._rows_of * MAX_GRADIENTS_PER_POINT + 1

    @property
    def keys(self) -> NDArray[np.int64]:
        """Unique numbers of the gradients: that of f first, then those of the constraints."""
        keys = np.arange(
            self._rows_of * MAX_GRADIENTS_PER_POINT, self._rows_of * MAX_GRADIENTS_PER_POINT + 1 + len(self.c), dtype=np.int64
        )
        keys[0] = self.serial * MAX_GRADIENTS_PER_POINT
        return keys

    def share_rows(self, other: Trial) -> None:
        """Share the gradients of the constraints, and their keys, with another point if they are equal."""
        if len(self.c) and np.array_equal(self.jacobian, other.jacobian):
            self._jacobian, self._rows_of, self._addresses = other.jacobian, other._rows_of, None

    @property
    def violation(self) -> float:
        """The largest violation of a constraint."""
        return max(self.inequality_violation, self.equality_violation)

    def penalty(self, weight: float) -> float:
        """f + weight · (sum of violations); infinite if a value is not finite."""
        return self.f + weight * self.total_violation if self.finite else np.inf

    def signs(self) -> Vector:
        """The derivative of the sum of violations with respect to c; a constraint at 0 counts as violated."""
        signs = (self.c >= 0).astype(np.float64)
        if self.equalities:
            signs[: self.equalities] = 2.0 * signs[: self.equalities] - 1.0
        return signs

    def penalty_gradient(self, weight: float) -> Vector:
        """Gradient of the penalty function: from all gradients if they are known or few, otherwise by one backward pass."""
        if len(self.c) == 0:
            return self.gradient  # which is cached for use if the point is accepted
        weights = weight * self.signs()
        if len(self.c) <= MAX_ROWS_WITH_FULL_JACOBIAN or (self._gradient is not None and self._jacobian is not None):
            if self.differentiable:
                return self.gradient + weights @ self.jacobian
            active = weights != 0  # gradients of satisfied constraints do not matter, even if they are not finite
            part: Vector = weights[active] @ self.jacobian[active]
            return self.gradient + part
        assert self._derivatives is not None
        return self._derivatives.combination(1.0, weights)

    def _differentiate(self) -> None:
        if self._gradient is None:
            assert self._derivatives is not None
            self._gradient, self._jacobian = self._derivatives.full()
            self._derivatives = None  # everything is computed, so the graph can be freed

    @property
    def gradient(self) -> Vector:
        """Gradient of f."""
        self._differentiate()
        assert self._gradient is not None
        return self._gradient

    @property
    def jacobian(self) -> Matrix:
        """Gradients of the constraints, one row each."""
        self._differentiate()
        assert self._jacobian is not None
        return self._jacobian

    @property
    def addresses(self) -> tuple[int, int, int, int]:
        """The addresses of x, the gradient of f, c and the gradients of the constraints, valid while this point exists."""
        if self._addresses is None:
            self._differentiate()
            self.x, self.c, self._gradient, self._jacobian = (
                np.ascontiguousarray(part, dtype=np.float64) for part in (self.x, self.c, self._gradient, self._jacobian)
            )
            self._addresses = address(self.x), address(self._gradient), address(self.c), address(self._jacobian)
        return self._addresses

    @property
    def differentiable(self) -> bool:
        """Whether all gradients here are finite."""
        if self._differentiable is None:
            self._differentiable = _finite(self.gradient) and _finite(self.jacobian)
        return self._differentiable

    def with_gradients(self, gradient: Vector, jacobian: Matrix | None = None) -> Trial:
        """The same point with another gradient of f, and others of the constraints."""
        rows = self.jacobian if jacobian is None else jacobian
        other = Trial.stored(self.x, self.f, self.c, self.equalities, gradient, rows)
        for name in ("finite", "total_violation", "inequality_violation", "equality_violation"):
            setattr(other, name, getattr(self, name))
        return other

    def read_by(self, read: Callable[[], Reading | None]) -> Trial:
        """The same point, with the function that reads its kinks."""
        self._read = read
        return self

    @property
    def reading(self) -> Reading | None:
        """The kinks of f read from the program; None if they are not read."""
        if self._reading is None and self._read is not None:
            self._reading = reading = self._read()
            if reading is not None and not reading.hidden and self._gradient is None:
                if not len(self.c):
                    self._gradient, self._jacobian = reading.gradient, np.zeros((0, len(self.x)))
                elif reading.constraints is not None:
                    self._gradient, self._jacobian = reading.gradient, reading.constraints.jacobian
        return self._reading

    def gradient_with(self, shares: Vector) -> Vector:
        """Gradient of f with given slopes at its kinks, if this point has the same kinks as the one the slopes are for."""
        reading = self.reading
        usable = reading is not None and not reading.hidden and reading.share_count == len(shares)
        return reading.gradient_with(shares) if usable and reading is not None else self.gradient

    def constraint_gradient(self, multipliers: Vector, shares: Matrix | None) -> Vector:
        """The weighted sum of constraint gradients, with given slopes at their kinks if these are visible."""
        reading = self.reading if shares is not None else None
        constraints = None if reading is None else reading.constraints
        if shares is None or constraints is None or constraints.share_count != shares.shape[1]:
            gradient: Vector = multipliers @ self.jacobian
            return gradient
        return constraints.weighted_gradient(multipliers, shares)

    def forget_reading(self) -> None:
        """Drop the reading, and the graph that it needs."""
        self._read = self._reading = None

    def release(self) -> None:
        """Free the autograd graph; gradients computed so far stay available."""
        self._derivatives = None
