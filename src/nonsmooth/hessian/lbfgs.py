"""BFGS with the last few pairs, in compact form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from nonsmooth.arrays.memory import new_vector
from nonsmooth.arrays.rows import Rows
from nonsmooth.hessian.corrections import low_rank_solver
from nonsmooth.hessian.form import DenseForm, Form, ScaledForm
from nonsmooth.hessian.pairs import HostPairs, Pairs
from nonsmooth.hessian.update import Curvature, Outcome
from nonsmooth.qp.workspace import APART, Metric, new_version

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_NO_PAIRS = np.zeros((0, 0))


class LimitedMemory:
    """The inverse Hessian as γI plus a correction of rank twice the number of pairs kept.

    With S and Y the pairs as columns, R the upper triangle of SᵀY and D its diagonal,

        H = γI + [S  γY] [ R⁻ᵀ(D + γYᵀY)R⁻¹   −R⁻ᵀ ] [ Sᵀ  ]
                         [ −R⁻¹                0    ] [ γYᵀ ]

    The pairs lie in slots; a new one takes the slot of the oldest. R and YᵀY grow by a column with each of them. Besides
    the pairs themselves nothing of size n is kept.

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
        kept: Pairs | None = None,
    ) -> None:
        self._size, self.pairs, self._scale, self._fixed, self._initial = size, pairs, scale, fixed_scaling, gamma
        self._kept: Pairs = HostPairs(pairs, size) if kept is None else kept
        self._plain: DenseForm | None = None
        """The form for the identity, as long as there are no pairs."""
        self.version = 0
        """Another number after every change: a form of the quadratic programs holds for one of them."""
        self.reset()

    def reset(self) -> None:
        """Forget all pairs."""
        self._order: list[int] = []
        """The slots in use, that of the oldest pair first."""
        self._upper: Matrix = np.zeros((self.pairs, self.pairs))
        """R by slots: entry (i, j) is sᵢ·yⱼ; it counts only where pair i is not younger than pair j."""
        self._squares: Matrix = np.zeros((self.pairs, self.pairs))
        """YᵀY by slots."""
        self.gamma = self._initial
        self.updates = 0
        self._changed()
        self._kept.clear()
        self.forget_products()

    def forget_products(self) -> None:
        """Compute products of rows anew: what is remembered may differ in rounding from what a continued run computes."""
        self._plain = None
        self._as_metric = new_version()

    def __getstate__(self) -> dict[str, Any]:
        """Products are remembered by keys and places that mean nothing elsewhere."""
        return {**vars(self), "_plain": None, "_middle": None, "_last": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget_products()

    def metric(self) -> Metric | None:
        """The multiple of the identity that it is before the first pair; with pairs it is not for compiled code."""
        return None if self._order else Metric(APART, self._as_metric, _NO_PAIRS, None, self.gamma, 0)

    def _changed(self) -> None:
        self.version += 1
        self._middle: Matrix | None = None
        self._last: tuple[Vector, Vector, Vector] | None = None

    @property
    def steps(self) -> Matrix:
        """The steps s as rows, oldest first: a copy."""
        return self._kept.arrays()[0][self._order]

    @property
    def changes(self) -> Matrix:
        """The changes y of the gradient as rows, oldest first: a copy."""
        return self._kept.arrays()[1][self._order]

    def apply(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """H times a vector or a matrix of columns."""
        if not self._order:
            return self.gamma * columns
        if columns.ndim == 1:
            steps, changes = self._projections(columns)
            scaled = np.multiply(columns, self.gamma, out=new_vector(self._size))
            return self._kept.add(scaled, self._weights(steps, changes))
        weights = self._weights(*self._kept.project(columns))
        return self._kept.add(np.multiply(columns, self.gamma, order="F"), weights)

    @property
    def size(self) -> int:
        """Number of variables."""
        return self._size

    def principal_solver(self, chosen: NDArray[np.intp]) -> Callable[[Vector], Vector]:
        """Solves systems with the rows and columns of H that belong to some variables."""
        if not self._order:
            return lambda vector: vector / self.gamma
        steps, changes = self._kept.arrays()
        rows = np.concatenate([steps[:, chosen], changes[:, chosen]])
        if self._middle is None:
            self._middle = self._compact()
        return low_rank_solver(self.gamma, rows, np.asarray(np.linalg.inv(self._middle), dtype=np.float64))

    def form(self, rows: Matrix | Rows, keys: NDArray[np.int64] | None = None) -> Form:
        """The matrix of a quadratic program over rows of gradients; where they are long, H times them is never formed."""
        if isinstance(rows, Rows):
            return CompactForm(self, rows, *self._kept.products(rows))
        if not self._order:
            if keys is None:
                return DenseForm(rows, self.gamma * rows.T)
            form = None if self._plain is None else self._plain.extended(rows, keys, lambda columns: columns)
            self._plain = DenseForm(rows, rows.T).remember(keys) if form is None else form
            return ScaledForm(self._plain, self.gamma)
        return CompactForm(self, rows, *self._kept.project(rows.T), rows @ rows.T)

    def _projections(self, vector: Vector) -> tuple[Vector, Vector]:
        """Sᵀv and Yᵀv by slots. H is applied to a change of the gradient just before an update with it: both are kept."""
        if self._last is None or self._last[0] is not vector:
            self._last = (vector, *self._kept.project(vector))
        return self._last[1], self._last[2]

    def _weights(self, steps: NDArray[np.float64], changes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of [S  Y] by slots in (H − γI)v, from Sᵀv and Yᵀv by slots."""
        if self._middle is None:
            self._middle = self._compact()
        weights: NDArray[np.float64] = self._middle @ np.concatenate([steps, changes])
        return weights

    def _compact(self) -> Matrix:
        """The matrix in the middle, by slots, with the factors γ in it."""
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

    def update(self, pair: Curvature) -> Outcome:
        """Keep one more pair; the oldest goes when there are too many."""
        self.forget_products()
        if not pair.product > 0:
            return Outcome.NOT_POSITIVE
        if not (np.isfinite(float(pair.s @ pair.s) / pair.product) and np.isfinite(pair.y).all()):  # H would not be finite
            return Outcome.NOT_FINITE
        outcome = Outcome.UPDATED
        if self._scale and (self.updates == 0 or not self._fixed):
            square = float(pair.y @ pair.y)
            factor = pair.product / square if square > 0 else np.inf  # it may underflow
            if np.isfinite(factor) and factor > 0:
                self.gamma, outcome = factor, Outcome.SCALED
        self._learn(pair.s, pair.y, pair.product)
        self.updates += 1
        return outcome

    def _learn(self, s: Vector, y: Vector, product: float) -> None:
        used = len(self._order)
        steps, changes = self._projections(y) if used else (np.zeros(0), np.zeros(0))
        slot = used if used < self.pairs else self._order.pop(0)
        self._order.append(slot)
        self._upper[: len(steps), slot], self._upper[slot, slot] = steps, product
        self._squares[: len(changes), slot] = self._squares[slot, : len(changes)] = changes
        self._squares[slot, slot] = y @ y
        self._kept.put(slot, s, y)
        self._changed()

    def arrays(self) -> dict[str, Any]:
        """Everything needed to restore it; the pairs by slots, since their order decides about rounding."""
        used = len(self._order)
        steps, changes = self._kept.arrays()
        return {
            "steps": steps, "changes": changes, "order": np.array(self._order, dtype=np.intp),
            "upper": self._upper[:used, :used], "squares": self._squares[:used, :used],
            "gamma": self.gamma, "updates": self.updates,
        }  # fmt: skip

    @staticmethod
    def shapes(arrays: dict[str, Any], variables: int, constraints: int) -> dict[str, tuple[int, ...]]:
        """What `arrays` must look like."""
        count = len(np.atleast_1d(arrays.get("order", np.zeros(0))))
        pairs, products = (count, variables), (count, count)
        expected: dict[str, tuple[int, ...]] = {"order": (count,), "gamma": (), "updates": ()}
        return {**expected, "steps": pairs, "changes": pairs, "upper": products, "squares": products}

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take over what `arrays` gave, or steps and changes, oldest first; too many are dropped, oldest first."""
        self.reset()
        steps, changes = np.asarray(arrays["steps"]), np.asarray(arrays["changes"])
        used = len(steps)
        order = [int(slot) for slot in arrays.get("order", range(used))]
        if sorted(order) != list(range(used)) or len(changes) != used:
            raise ValueError(f"the order of {used} pairs is {order}")
        if "order" in arrays and used <= self.pairs:
            for slot in range(used):
                self._kept.put(slot, steps[slot], changes[slot])
            self._order = order
            self._upper[:used, :used], self._squares[:used, :used] = arrays["upper"], arrays["squares"]
        else:
            for slot in order[-self.pairs :]:
                s, y = np.array(steps[slot], dtype=np.float64), np.array(changes[slot], dtype=np.float64)
                self._learn(s, y, float(s @ y))
        self.gamma, self.updates = float(arrays["gamma"]), int(arrays["updates"])
        self._changed()


class CompactForm:
    """The matrix of a quadratic program, from the products of its rows with the pairs and with each other."""

    def __init__(self, hessian: LimitedMemory, rows: Matrix | Rows, steps: Matrix, changes: Matrix, mutual: Matrix) -> None:
        self._hessian, self._rows, self._steps, self._changes = hessian, rows, steps, changes
        self._version = hessian.version
        matrix = hessian.gamma * mutual
        if len(steps):
            matrix += np.concatenate([steps, changes]).T @ hessian._weights(steps, changes)
        self.matrix = 0.5 * (matrix + matrix.T)

    def step(self, weights: Vector, *, first: int = 0, combined: Vector | None = None) -> Vector:
        """H·r for the combination r of the rows from `first` on; `combined` is r itself where it is known."""
        hessian = self._hessian
        assert hessian.version == self._version, "the matrix has changed since"
        if combined is None:
            combined = np.concatenate([np.zeros(first), weights]) @ self._rows
        result = np.multiply(combined, hessian.gamma, out=new_vector(len(combined)))
        if not len(self._steps):
            return result
        along = hessian._weights(self._steps[:, first:] @ weights, self._changes[:, first:] @ weights)
        return hessian._kept.add(result, along)
