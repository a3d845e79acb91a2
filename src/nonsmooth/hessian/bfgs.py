"""BFGS with full memory: a dense matrix, or the low-rank corrections that add up to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_factor, cho_solve

from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.corrections import Corrections
from nonsmooth.hessian.quadratic_form import DenseForm, sparse_rows
from nonsmooth.hessian.update import CurvaturePair, UpdateOutcome
from nonsmooth.native import address
from nonsmooth.qp.workspace import FULL_MATRIX, LOW_RANK, UPPER_TRIANGLE, Metric, new_version

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

RIDGE, RIDGE_GROWTH = 1e-15, 100.0
"""The ridge for a matrix that rounding made indefinite, relative to its largest diagonal entry, and its growth factor."""
MIN_TRIANGLE_VARIABLES = 100
"""Above this number of variables only one triangle of the matrix is updated, with half the memory traffic."""
MAX_SINGLE_COLUMNS = 8
"""Up to this many columns are multiplied one by one: this reads only the triangle, while `dsymm` unpacks it."""
MIN_CORRECTION_VARIABLES = 200
"""From this number of variables the dense matrix is formed only after n/VARIABLES_PER_CORRECTION updates."""
VARIABLES_PER_CORRECTION = 4


class FullMemory:
    """The inverse Hessian with all updates: a dense n×n matrix, updated in place.

    For large n and few updates the corrections are stored instead, which takes less memory traffic.

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
        self._triangle = size > MIN_TRIANGLE_VARIABLES
        self.reset()

    def reset(self) -> None:
        """Go back to γ times the identity; an initial matrix is used only once."""
        self._corrections: Corrections | None = None
        self._matrix: Matrix = np.zeros((0, 0))
        if self._initial is not None:
            self._matrix = self._initial
        elif self._size >= MIN_CORRECTION_VARIABLES:
            self._corrections = Corrections(self._size, gamma=self._gamma)
        else:
            self._matrix = np.zeros((self._size, self._size))
            np.fill_diagonal(self._matrix, self._gamma)
        self._initial = None
        self.updates = 0
        self.forget_products()
        self._product: tuple[Vector, Vector] | None = None

    def forget_products(self) -> None:
        """Discard cached products of rows: they may differ in rounding from what a resumed run computes."""
        self._last: DenseForm | None = None
        self._version = new_version()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached products, whose keys and addresses are valid in this process only."""
        return {**vars(self), "_last": None, "_product": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget_products()

    def metric(self) -> Metric | None:
        """The matrix for compiled code."""
        corrections, array = self._corrections, self._matrix
        if corrections is not None:
            if 2 * len(corrections) > self._size:
                return None
            array = corrections.rows
            start = address(array) if len(array) else None
            return Metric(LOW_RANK, self._version, array, start, corrections.gamma, len(corrections))
        if not array.flags.c_contiguous:
            return None
        return Metric(UPPER_TRIANGLE if self._triangle else FULL_MATRIX, self._version, array, address(array), 1.0, 0)

    @property
    def matrix(self) -> Matrix:
        """The whole matrix; a copy if only a triangle or corrections are stored."""
        if not self._triangle:
            return self._matrix
        upper = self._matrix if self._corrections is None else self._corrections.upper_triangle()
        whole = np.triu(upper)
        whole += np.triu(upper, 1).T
        return whole

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        if not self._triangle:
            return self._matrix @ columns
        if columns.ndim == 1:
            # H is applied to a gradient change just before the update with it, so that product is cached.
            if self._product is None or self._product[0] is not columns:
                self._product = columns, self._times(columns)
            return self._product[1].copy()
        if self._corrections is not None:
            return self._corrections.apply(columns)
        if columns.shape[1] > MAX_SINGLE_COLUMNS:
            return np.asarray(blas.dsymm(1.0, self._matrix.T, columns, lower=1))
        result = np.empty(columns.shape, order="F")
        for index in range(columns.shape[1]):
            result[:, index] = self._times(columns[:, index])
        return result

    def _times(self, vector: Vector) -> Vector:
        if self._corrections is not None:
            return self._corrections.apply(vector)
        # The upper triangle by rows, as numpy stores it, is the lower one by columns, as BLAS expects it.
        return np.asarray(blas.dsymv(1.0, self._matrix.T, vector, lower=1))

    @property
    def size(self) -> int:
        """Number of variables."""
        return self._size

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """A solver for systems with the principal submatrix of H that belongs to some variables."""
        if self._corrections is not None:
            return self._corrections.principal_solver(chosen)
        upper = self._matrix[np.ix_(chosen, chosen)]  # reads only the upper triangle, which is always valid
        factor = _factor(upper)
        return lambda vector: np.asarray(cho_solve(factor, vector, check_finite=False))

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> DenseForm:
        """The quadratic form over rows of gradients; until an update, the next form reuses products of the last one."""
        gradients = rows.dense() if isinstance(rows, Rows) else rows
        if keys is None:
            return self._whole_form(gradients)
        form = None if self._last is None else self._last.extended(gradients, keys, self.apply)
        self._last = self._whole_form(gradients).remember(keys) if form is None else form
        return self._last

    def _whole_form(self, gradients: Matrix) -> DenseForm:
        sparse = sparse_rows(gradients)
        if self._corrections is not None:
            scaled = self._corrections.apply(gradients.T, sparse)
        else:
            scaled = self._of_rows(gradients) if sparse is None else (sparse @ self.matrix).T
        return DenseForm(gradients, scaled, sparse)

    def _of_rows(self, gradients: Matrix) -> Matrix:
        """H times the rows as columns, with the rows' memory layout."""
        return self.apply(gradients.T) if self._triangle else (gradients @ self._matrix).T

    def update(self, pair: CurvaturePair) -> UpdateOutcome:
        """Update with one pair; the matrix stays unchanged if the result would not be usable."""
        self.forget_products()  # even if the update is skipped
        if not pair.product > 0:
            return UpdateOutcome.NOT_POSITIVE
        outcome = UpdateOutcome.UPDATED
        scale = 1.0
        if self._scale and self.updates == 0:
            square = float(pair.y @ pair.y)
            factor = pair.product / square if square > 0 else np.inf  # it may underflow
            if np.isfinite(factor) and factor > 0:
                scale, outcome = factor / self._gamma, UpdateOutcome.SCALED
        product = scale * self.apply(pair.y)
        inverse = 1.0 / pair.product
        coefficient = inverse * inverse * max(float(pair.y @ product), 0.0) + inverse
        # H + u sᵀ + s uᵀ with u = (coefficient/2) s − inverse·Hy: symmetric in floating point too.
        u = 0.5 * coefficient * pair.s - inverse * product
        if not (np.isfinite(u).all() and np.isfinite(pair.s).all() and np.isfinite(coefficient)):
            return UpdateOutcome.NOT_FINITE
        self._product = None
        if self._corrections is not None:
            self._corrections.gamma *= scale  # it differs from 1 only before the first correction
            self._corrections.add(pair.s, u)
            if len(self._corrections) * VARIABLES_PER_CORRECTION >= self._size:
                self._matrix, self._corrections = self._corrections.upper_triangle(), None
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
        """A copy whose condition number is at most the threshold, or the matrix itself if it satisfies this already."""
        matrix = self._matrix if self._corrections is None else self._corrections.upper_triangle()
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
        if self._corrections is not None:
            return {"corrections": self._corrections.rows, "gamma": self._corrections.gamma, "updates": self.updates}
        return {"matrix": self.matrix, "updates": self.updates}

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The shapes that `arrays` must have."""
        if "corrections" not in arrays:
            return {"matrix": (variables, variables), "updates": ()}
        count = len(np.atleast_1d(arrays["corrections"])) // 2
        return {"corrections": (2 * count, variables), "gamma": (), "updates": ()}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore from the result of `arrays`."""
        self._initial = None
        self.reset()
        self.updates = int(arrays["updates"])
        if "matrix" in arrays:
            self._matrix, self._corrections = np.array(arrays["matrix"], dtype=np.float64, order="C"), None
            return
        self._corrections = Corrections(self._size, gamma=float(arrays["gamma"]))
        rows = np.asarray(arrays["corrections"], dtype=np.float64)
        for s, u in zip(rows[0::2], rows[1::2], strict=True):
            self._corrections.add(s, u)


def _factor(matrix: Matrix) -> tuple[Matrix, bool]:
    """The Cholesky factor of a matrix that is positive definite up to rounding."""
    diagonal, ridge = np.diagonal(matrix).copy(), RIDGE * float(np.abs(np.diagonal(matrix)).max())
    while True:
        try:
            factor: tuple[Matrix, bool] = cho_factor(matrix, lower=False, check_finite=False)
            return factor
        except np.linalg.LinAlgError:
            np.fill_diagonal(matrix, diagonal + ridge)
            ridge *= RIDGE_GROWTH
