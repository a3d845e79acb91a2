"""L-BFGS in compact representation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from nonsmooth.arrays.memory import new_vector
from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.corrections import low_rank_solver
from nonsmooth.hessian.pairs import HostPairs, Pairs
from nonsmooth.hessian.quadratic_form import DenseForm, QuadraticForm, ScaledForm
from nonsmooth.hessian.update import CurvaturePair, UpdateOutcome
from nonsmooth.qp.workspace import LOW_RANK, Metric, new_version

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_NO_PAIRS = np.zeros((0, 0))


class LimitedMemory:
    """The inverse Hessian as γI plus a correction whose rank is twice the number of stored pairs.

    With S and Y the pairs as columns, R the upper triangle of SᵀY and D its diagonal,

        H = γI + [S  γY] [ R⁻ᵀ(D + γYᵀY)R⁻¹   −R⁻ᵀ ] [ Sᵀ  ]
                         [ −R⁻¹                0    ] [ γYᵀ ]

    The pairs are stored in slots; a new pair takes the slot of the oldest, and R and YᵀY get a new column. Nothing else of
    size n is stored.

    >>> from nonsmooth.hessian import curvature_pair
    >>> hessian = LimitedMemory(2, pairs=3)
    >>> hessian.update(curvature_pair(np.array([1.0, 0.0]), np.array([4.0, 0.0]), None, 0.0)).name
    'SCALED'
    >>> hessian.apply(np.array([4.0, 0.0]))
    array([1., 0.])
    """

    def __init__(
        self,
        size: int,
        *,
        pairs: int,
        scale: bool = True,
        fixed_scaling: bool = False,
        gamma: float = 1.0,
        storage: Pairs | None = None,
    ) -> None:
        self._size, self.pairs, self._scale, self._fixed, self._initial = size, pairs, scale, fixed_scaling, gamma
        self._storage: Pairs = HostPairs(pairs, size) if storage is None else storage
        self._plain: DenseForm | None = None
        """The quadratic form for the identity, while there are no pairs."""
        self.version = 0
        """Incremented by every change: a quadratic form is valid for one version."""
        self.reset()

    def reset(self) -> None:
        """Remove all pairs."""
        self._order: list[int] = []
        """The slots in use, oldest pair first."""
        self._upper: Matrix = np.zeros((self.pairs, self.pairs))
        """R by slots: entry (i, j) is sᵢ·yⱼ, valid only if pair i is not newer than pair j."""
        self._squares: Matrix = np.zeros((self.pairs, self.pairs))
        """YᵀY by slots."""
        self.gamma = self._initial
        self.updates = 0
        self._changed()
        self._storage.clear()
        self.forget_products()

    def forget_products(self) -> None:
        """Discard cached products of rows: they may differ in rounding from what a resumed run computes."""
        self._plain = None
        self._metric_version = new_version()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached products, whose keys and addresses are valid in this process only."""
        return {**vars(self), "_plain": None, "_middle": None, "_last": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget_products()

    def metric(self) -> Metric | None:
        """The multiple of the identity before the first pair; None with pairs, which compiled code does not support."""
        return None if self._order else Metric(LOW_RANK, self._metric_version, _NO_PAIRS, None, self.gamma, 0)

    def _changed(self) -> None:
        self.version += 1
        self._middle: Matrix | None = None
        self._last: tuple[Vector, Vector, Vector] | None = None

    @property
    def steps(self) -> Matrix:
        """The steps s as rows, oldest first: a copy."""
        return self._storage.arrays()[0][self._order]

    @property
    def changes(self) -> Matrix:
        """The changes y of the gradient as rows, oldest first: a copy."""
        return self._storage.arrays()[1][self._order]

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        if not self._order:
            return self.gamma * columns
        if columns.ndim == 1:
            steps, changes = self._projections(columns)
            scaled = np.multiply(columns, self.gamma, out=new_vector(self._size))
            return self._storage.add(scaled, self._weights(steps, changes))
        weights = self._weights(*self._storage.project(columns))
        return self._storage.add(np.multiply(columns, self.gamma, order="F"), weights)

    @property
    def size(self) -> int:
        """Number of variables."""
        return self._size

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """A solver for systems with the principal submatrix of H that belongs to some variables."""
        if not self._order:
            return lambda vector: vector / self.gamma
        steps, changes = self._storage.arrays()
        rows = np.concatenate([steps[:, chosen], changes[:, chosen]])
        if self._middle is None:
            self._middle = self._compact()
        return low_rank_solver(self.gamma, rows, np.asarray(np.linalg.inv(self._middle), dtype=np.float64))

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> QuadraticForm:
        """The quadratic form over rows of gradients; for long rows, H times the rows is never formed."""
        if isinstance(rows, Rows):
            return CompactForm(self, rows, *self._storage.products(rows))
        if not self._order:
            if keys is None:
                return DenseForm(rows, self.gamma * rows.T)
            form = None if self._plain is None else self._plain.extended(rows, keys, lambda columns: columns)
            self._plain = DenseForm(rows, rows.T).remember(keys) if form is None else form
            return ScaledForm(self._plain, self.gamma)
        return CompactForm(self, rows, *self._storage.project(rows.T), rows @ rows.T)

    def _projections(self, vector: Vector) -> tuple[Vector, Vector]:
        """Sᵀv and Yᵀv by slots, cached: H is applied to a gradient change just before the update with it."""
        if self._last is None or self._last[0] is not vector:
            self._last = (vector, *self._storage.project(vector))
        return self._last[1], self._last[2]

    def _weights(self, steps: NDArray[np.float64], changes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of [S  Y] by slots in (H − γI)v, from Sᵀv and Yᵀv by slots."""
        if self._middle is None:
            self._middle = self._compact()
        weights: NDArray[np.float64] = self._middle @ np.concatenate([steps, changes])
        return weights

    def _compact(self) -> Matrix:
        """The middle matrix of the compact representation, by slots, including the factors γ."""
        order = np.array(self._order)
        upper = np.triu(self._upper[np.ix_(order, order)])
        squares = self._squares[np.ix_(order, order)]
        inverse = solve_triangular(upper, np.eye(len(order)), check_finite=False)
        inner = np.diag(np.diag(upper)) + self.gamma * squares
        left, corner = inverse.T @ inner @ inverse, -self.gamma * inverse
        sorted_middle = np.block([[left, corner.T], [corner, np.zeros_like(upper)]])
        middle = np.empty_like(sorted_middle)
        both = np.concatenate([order, len(order) + order])
        middle[np.ix_(both, both)] = sorted_middle
        return middle

    def update(self, pair: CurvaturePair) -> UpdateOutcome:
        """Store a pair; the oldest is removed when there are too many."""
        self.forget_products()
        if not pair.product > 0:
            return UpdateOutcome.NOT_POSITIVE
        if not (np.isfinite(float(pair.s @ pair.s) / pair.product) and np.isfinite(pair.y).all()):  # H would not be finite
            return UpdateOutcome.NOT_FINITE
        outcome = UpdateOutcome.UPDATED
        if self._scale and (self.updates == 0 or not self._fixed):
            square = float(pair.y @ pair.y)
            factor = pair.product / square if square > 0 else np.inf  # it may underflow
            if np.isfinite(factor) and factor > 0:
                self.gamma, outcome = factor, UpdateOutcome.SCALED
        self._store(pair.s, pair.y, pair.product)
        self.updates += 1
        return outcome

    def _store(self, s: Vector, y: Vector, product: float) -> None:
        used = len(self._order)
        steps, changes = self._projections(y) if used else (np.zeros(0), np.zeros(0))
        slot = used if used < self.pairs else self._order.pop(0)
        self._order.append(slot)
        self._upper[: len(steps), slot], self._upper[slot, slot] = steps, product
        self._squares[: len(changes), slot] = self._squares[slot, : len(changes)] = changes
        self._squares[slot, slot] = y @ y
        self._storage.put(slot, s, y)
        self._changed()

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it; the pairs by slots, because their order affects rounding."""
        used = len(self._order)
        steps, changes = self._storage.arrays()
        return {
            "steps": steps, "changes": changes, "order": np.array(self._order, dtype=np.intp),
            "upper": self._upper[:used, :used], "squares": self._squares[:used, :used],
            "gamma": self.gamma, "updates": self.updates,
        }  # fmt: skip

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """The shapes that `arrays` must have."""
        count = len(np.atleast_1d(arrays.get("order", np.zeros(0))))
        pairs, products = (count, variables), (count, count)
        expected: dict[str, tuple[int, ...]] = {"order": (count,), "gamma": (), "updates": ()}
        return {**expected, "steps": pairs, "changes": pairs, "upper": products, "squares": products}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore from the result of `arrays`, or from steps and changes, oldest first; excess old pairs are dropped."""
        self.reset()
        steps, changes = np.asarray(arrays["steps"]), np.asarray(arrays["changes"])
        used = len(steps)
        order = [int(slot) for slot in arrays.get("order", range(used))]
        if sorted(order) != list(range(used)) or len(changes) != used:
            raise ValueError(f"order must be a permutation of 0 to {used - 1} for {used} steps and changes, not {order}")
        if "order" in arrays and used <= self.pairs:
            for slot in range(used):
                self._storage.put(slot, steps[slot], changes[slot])
            self._order = order
            self._upper[:used, :used], self._squares[:used, :used] = arrays["upper"], arrays["squares"]
        else:
            for slot in order[-self.pairs :]:
                s, y = np.array(steps[slot], dtype=np.float64), np.array(changes[slot], dtype=np.float64)
                self._store(s, y, float(s @ y))
        self.gamma, self.updates = float(arrays["gamma"]), int(arrays["updates"])
        self._changed()


class CompactForm:
    """The quadratic form from the products of its rows with the pairs and with each other."""

    def __init__(self, hessian: LimitedMemory, rows: Matrix | Rows, steps: Matrix, changes: Matrix, mutual: Matrix) -> None:
        self._hessian, self._rows, self._steps, self._changes = hessian, rows, steps, changes
        self._version = hessian.version
        matrix = hessian.gamma * mutual
        if len(steps):
            matrix += np.concatenate([steps, changes]).T @ hessian._weights(steps, changes)
        self.matrix = 0.5 * (matrix + matrix.T)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself, if known."""
        hessian = self._hessian
        assert hessian.version == self._version, "the inverse Hessian has changed since this form was computed"
        if combined is None:
            combined = np.concatenate([np.zeros(first), weights]) @ self._rows
        result = np.multiply(combined, hessian.gamma, out=new_vector(len(combined)))
        if not len(self._steps):
            return result
        along = hessian._weights(self._steps[:, first:] @ weights, self._changes[:, first:] @ weights)
        return hessian._storage.add(result, along)
