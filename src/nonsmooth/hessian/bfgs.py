"""BFGS that forgets nothing: with the whole matrix, or what would be added up to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_factor, cho_solve

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.corrections import Corrections
from nonsmooth.hessian.form import DenseForm, without_zeros
from nonsmooth.hessian.update import Curvature, Outcome
from nonsmooth.native import address
from nonsmooth.qp.workspace import APART as KEPT_APART
from nonsmooth.qp.workspace import TRIANGLE as ONE_TRIANGLE
from nonsmooth.qp.workspace import WHOLE, Metric, new_version

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

RIDGE, RIDGE_GROWTH = 1e-15, 100.0
"""What is added to the diagonal of a matrix that rounding made indefinite, by its largest entry, and how fast that grows."""
TRIANGLE = 100
"""Above so many variables only one triangle of the matrix is kept up to date: half the memory traffic of an update."""
FEW_COLUMNS = 8
"""Up to so many columns are multiplied one by one: that reads the triangle, where a product of matrices unfolds it."""
APART = 200
"""From so many variables on the matrix is not added up before there have been n/APART_UNTIL updates."""
APART_UNTIL = 4


class FullMemory:
    """The inverse Hessian with all updates: a dense n×n matrix, updated in place.

    Where n is large and the updates are few, they are kept one by one instead, which is less to read and to write.

    >>> from nonsmooth.hessian import curvature_pair
    >>> hessian = FullMemory(2)
    >>> hessian.update(curvature_pair(np.array([1.0, 0.0]), np.array([4.0, 0.0]), None, 0.0)).name
    'SCALED'
    >>> hessian.apply(np.array([4.0, 0.0]))
    array([1., 0.])
    """

    def __init__(self, size: int, initial: Matrix | None = None, *, scale: bool = True, gamma: float = 1.0) -> None:
        self._size, self._gamma = size, gamma
        self._initial = None if initial is None else np.array(initial, dtype=np.float64, order="C")
        self._scale = scale
        self._triangle = size > TRIANGLE
        self.reset()

    def reset(self) -> None:
        """Go back to γ times the identity; an initial matrix is used only once."""
        self._apart: Corrections | None = None
        self._matrix: Matrix = np.zeros((0, 0))
        if self._initial is not None:
            self._matrix = self._initial
        elif self._size >= APART:
            self._apart = Corrections(self._size, gamma=self._gamma)
        else:
            self._matrix = np.zeros((self._size, self._size))
            np.fill_diagonal(self._matrix, self._gamma)
        self._initial = None
        self.updates = 0
        self.forget_products()
        self._product: tuple[Vector, Vector] | None = None

    def forget_products(self) -> None:
        """Compute products of rows anew: what is remembered may differ in rounding from what a continued run computes."""
        self._last: DenseForm | None = None
        self._version = new_version()

    def __getstate__(self) -> dict[str, Any]:
        """Products are remembered by keys and places that mean nothing elsewhere."""
        return {**vars(self), "_last": None, "_product": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget_products()

    def metric(self) -> Metric | None:
        """The matrix as compiled code can use it."""
        apart, array = self._apart, self._matrix
        if apart is not None:
            if 2 * len(apart) > self._size:
                return None
            array = apart.rows
            return Metric(KEPT_APART, self._version, array, address(array) if len(array) else None, apart.gamma, len(apart))
        if not array.flags.c_contiguous:
            return None
        return Metric(ONE_TRIANGLE if self._triangle else WHOLE, self._version, array, address(array), 1.0, 0)

    @property
    def matrix(self) -> Matrix:
        """The whole matrix; where only a triangle or less is kept up to date, a copy."""
        if not self._triangle:
            return self._matrix
        upper = self._matrix if self._apart is None else self._apart.added_up()
        whole = np.triu(upper)
        whole += np.triu(upper, 1).T
        return whole

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        if not self._triangle:
            return self._matrix @ columns
        if columns.ndim == 1:
            # H is applied to a change of the gradient just before an update with it: that product is remembered.
            if self._product is None or self._product[0] is not columns:
                self._product = columns, self._times(columns)
            return self._product[1].copy()
        if self._apart is not None:
            return self._apart.apply(columns)
        if columns.shape[1] > FEW_COLUMNS:
            return np.asarray(blas.dsymm(1.0, self._matrix.T, columns, lower=1))
        result = np.empty(columns.shape, order="F")
        for index in range(columns.shape[1]):
            result[:, index] = self._times(columns[:, index])
        return result

    def _times(self, vector: Vector) -> Vector:
        if self._apart is not None:
            return self._apart.apply(vector)
        # The upper triangle by rows, as numpy stores it, is the lower one by columns, as BLAS expects it.
        return np.asarray(blas.dsymv(1.0, self._matrix.T, vector, lower=1))

    @property
    def size(self) -> int:
        """Number of variables."""
        return self._size

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """Solves systems with the rows and columns of H that belong to some variables."""
        if self._apart is not None:
            return self._apart.principal_solver(chosen)
        upper = self._matrix[np.ix_(chosen, chosen)]  # in the upper triangle also where only that is kept up to date
        factor = _factor(upper)
        return lambda vector: np.asarray(cho_solve(factor, vector, check_finite=False))

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> DenseForm:
        """The matrix of a quadratic program over rows of gradients; the last form helps with the next, until an update."""
        gradients = rows.dense() if isinstance(rows, Rows) else rows
        if keys is None:
            return self._whole_form(gradients)
        form = None if self._last is None else self._last.extended(gradients, keys, self.apply)
        self._last = self._whole_form(gradients).remember(keys) if form is None else form
        return self._last

    def _whole_form(self, gradients: Matrix) -> DenseForm:
        thin = without_zeros(gradients)
        if self._apart is not None:
            scaled = self._apart.apply(gradients.T, thin)
        else:
            scaled = self._of_rows(gradients) if thin is None else (thin @ self.matrix).T
        return DenseForm(gradients, scaled, thin)

    def _of_rows(self, gradients: Matrix) -> Matrix:
        """H times the rows as columns, which lie as they were given: one row behind the other."""
        return self.apply(gradients.T) if self._triangle else (gradients @ self._matrix).T

    def update(self, pair: Curvature) -> Outcome:
        """Learn from one step; the matrix stays as it was if the result would not be usable."""
        self.forget_products()  # in any case
        if not pair.product > 0:
            return Outcome.NOT_POSITIVE
        outcome = Outcome.UPDATED
        scale = 1.0
        if self._scale and self.updates == 0:
            square = float(pair.y @ pair.y)
            factor = pair.product / square if square > 0 else np.inf  # it may underflow
            if np.isfinite(factor) and factor > 0:
                scale, outcome = factor / self._gamma, Outcome.SCALED
        product = scale * self.apply(pair.y)
        inverse = 1.0 / pair.product
        coefficient = inverse * inverse * max(float(pair.y @ product), 0.0) + inverse
        # H + u sᵀ + s uᵀ with u = (coefficient/2) s − inverse·Hy: symmetric in floating point too.
        u = 0.5 * coefficient * pair.s - inverse * product
        if not (np.isfinite(u).all() and np.isfinite(pair.s).all() and np.isfinite(coefficient)):
            return Outcome.NOT_FINITE
        self._product = None
        if self._apart is not None:
            self._apart.gamma *= scale  # there is nothing else yet where it is not 1
            self._apart.add(pair.s, u)
            if len(self._apart) * APART_UNTIL >= self._size:
                self._matrix, self._apart = self._apart.added_up(), None
            self.updates += 1
            return outcome
        if scale != 1.0:
            self._matrix *= scale
        if self._triangle:
            self._matrix = blas.dsyr2(1.0, u, pair.s, a=self._matrix.T, lower=1, overwrite_a=1).T  # in place
        else:
            change = np.outer(u, pair.s)
            self._matrix += change + change.T
        self.updates += 1
        return outcome

    def regularized(self, threshold: float, *, lower_large: bool) -> FullMemory:
        """A copy whose condition number is at most the threshold; itself where it is already."""
        matrix = self._matrix if self._apart is None else self._apart.added_up()
        values, vectors = np.linalg.eigh(matrix, UPLO="U" if self._triangle else "L")
        largest, smallest = float(values[-1]), float(values[0])
        if smallest > 0 and largest <= threshold * smallest:
            return self
        if lower_large and smallest > 0:
            values = np.minimum(values, threshold * smallest)
        else:
            values = np.maximum(values, largest / threshold)
        return FullMemory(self._size, (vectors * values) @ vectors.T)

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it."""
        if self._apart is not None:
            return {"corrections": self._apart.rows, "gamma": self._apart.gamma, "updates": self.updates}
        return {"matrix": self.matrix, "updates": self.updates}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """What `arrays` must look like."""
        if "corrections" not in arrays:
            return {"matrix": (variables, variables), "updates": ()}
        count = len(np.atleast_1d(arrays["corrections"])) // 2
        return {"corrections": (2 * count, variables), "gamma": (), "updates": ()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self._initial = None
        self.reset()
        self.updates = int(arrays["updates"])
        if "matrix" in arrays:
            self._matrix, self._apart = np.array(arrays["matrix"], dtype=np.float64, order="C"), None
            return
        self._apart = Corrections(self._size, gamma=float(arrays["gamma"]))
        rows = np.asarray(arrays["corrections"], dtype=np.float64)
        for s, u in zip(rows[0::2], rows[1::2], strict=True):
            self._apart.add(s, u)


def _factor(matrix: Matrix) -> tuple[Matrix, bool]:
    """The Cholesky factor of a matrix that is positive definite but for rounding."""
    diagonal, ridge = np.diagonal(matrix).copy(), RIDGE * float(np.abs(np.diagonal(matrix)).max())
    while True:
        try:
            factor: tuple[Matrix, bool] = cho_factor(matrix, lower=False, check_finite=False)
            return factor
        except np.linalg.LinAlgError:
            np.fill_diagonal(matrix, diagonal + ridge)
            ridge *= RIDGE_GROWTH
