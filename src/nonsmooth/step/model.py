"""The local model of the penalty function and its minimizer, the step.

At x the model consists of the maximum of the cuts of the objective, the linearized constraints, and the curvature B = H⁻¹. With
ρ = 1/μ the step minimizes

    max_k (g_k·d − e_k)  +  ρ · (violation of the linearized constraints)  +  ½ d·B·d

It is computed from the dual, a quadratic program in the weights w of the cuts (a simplex) and the multipliers λ (a box of
size ρ):

    min ½ r·H·r + e·w − c·λ,   r = Σ w_k g_k + Σ λ_i ∇c_i,   d = −H·r

Changing ρ changes only the box, so all programs at one point share their matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.arrays.rows import MAX_DENSE_VARIABLES, Rows, stack
from nonsmooth.evaluate import Trial
from nonsmooth.hessian import InverseHessian
from nonsmooth.hessian.face import Face
from nonsmooth.hessian.quadratic_form import QuadraticForm
from nonsmooth.kinks.bundle import Cuts
from nonsmooth.kinks.pieces import PieceRows
from nonsmooth.qp import NO_BALL, Product, QPSolver, Session
from nonsmooth.qp.workspace import CurrentPoint, ExtraRows, NativeModel, NativeStep, fits

if TYPE_CHECKING:
    from nonsmooth.structure import LocalTerms

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


MIN_GRADIENTS_WITH_KEYS = 60
"""The number of gradients from which products of unchanged gradients are reused."""
MAX_UNSCREENED_CUTS = 12
"""The number of cuts up to which none is screened out."""
MIN_ACTIVE_WEIGHT = 1e-10
"""The smallest weight on the simplex with which a cut counts as active."""
MIN_WEIGHT_OF_OWN_CUT = 1e-3
"""The smallest weight of the cut at x in the weights from which the bound for screening is computed."""
ROUNDING_MARGIN = 1.001
"""Factor by which the bound for screening is raised, so that rounding errors screen out no active cut."""


class Step(NamedTuple):
    """A direction and what the model predicts for it."""

    direction: Vector
    gradient: Vector
    """r: the combined gradient, with direction = −H·r."""
    objective_gradient: Vector
    """The objective's part of r, Σ w_k g_k."""
    weights: Vector
    multipliers: Vector
    """One per constraint, between −ρ or 0 and ρ."""
    row_multipliers: Vector
    """The multipliers of single rows: first the constraints at x, then the further pieces of constraints."""
    weight: float
    """The penalty weight ρ = 1/μ of the step."""
    objective_change: float
    """Predicted change of f."""
    predicted_violation: float
    """Predicted sum of violations."""
    decrease: float
    """Predicted change of the penalty function; negative if the model predicts a decrease."""
    error: float
    """Σ w_k e_k, the aggregate linearization error: how far the weighted gradients are from being gradients at x."""
    trusted: bool
    curvature_known: bool = True
    """Whether B·direction = −gradient."""
    shares: Vector | None = None
    """For each visible term of f, by places, its slope as a share: 0 is the left slope, 1 the right; None without terms."""
    piece_shares: Matrix | None = None
    """The same for the terms of each constraint, times its multiplier; None if kinks of constraints are not visible."""

    @property
    def has_visible_kinks(self) -> bool:
        """Whether the model uses kinks read from the program."""
        return self.shares is not None or self.piece_shares is not None

    @property
    def uses_pieces(self) -> bool:
        """Whether pieces read from the program are active in the step."""
        return self.piece_shares is not None and bool((self.row_multipliers[len(self.multipliers) :] > 0.0).any())

    @property
    def at_kink(self) -> bool:
        """Whether more than one cut is active in the step: x is near a kink."""
        return len(self.weights) > 1 and int((self.weights > MIN_ACTIVE_WEIGHT).sum()) > 1


class Model:
    """The model at one point, for any penalty weight; `multipliers` of an earlier step warm-start large programs."""

    def __init__(
        self,
        at: Trial,
        cuts: Cuts,
        piece_rows: PieceRows | None,
        hessian: InverseHessian | Face,
        solver: QPSolver,
        *,
        multipliers: Vector | None = None,
        shift: Vector | None = None,
        terms: LocalTerms | None = None,
    ) -> None:
        self._terms = terms
        self._shift = shift
        """The quadratic term of the model is centered at this step instead of at 0."""
        self._at, self._cuts, self._piece_rows, self._hessian = at, cuts, piece_rows, hessian
        self._solver, self._multipliers = solver, multipliers
        self._cut_count, self._constraint_count = cuts.count, len(at.c)
        self._last_solution: Vector | None = None
        self._last_weight = np.inf
        self._sessions: dict[bytes, tuple[NDArray[np.intp], Session]] = {}
        self._native = self._in_workspace()

    def _in_workspace(self) -> NativeModel | None:
        """The model in compiled code, if that is available for it."""
        at, cuts, piece_rows = self._at, self._cuts, self._piece_rows
        total = self._cut_count + self._constraint_count + (0 if piece_rows is None else len(piece_rows))
        metric = self._hessian.metric()
        if self._terms is not None:
            return None
        if len(at.x) > MAX_DENSE_VARIABLES or metric is None or self._shift is not None or not fits(metric, total):
            return None
        workspace = self._solver.workspace(len(at.x))
        if workspace is None:
            return None
        multipliers = self._multipliers
        if multipliers is not None and len(multipliers) != self._constraint_count:
            multipliers = None
        part = piece_rows
        extra_rows = None if part is None else ExtraRows(part.table, part.index, part.signs, part.weights)
        arrays = (at.x, at.gradient, at.c, at.jacobian)  # not the point itself: it may later share another point's rows
        point = CurrentPoint(at.f, at.first_keys, at.equalities, self._constraint_count, at.addresses, multipliers, arrays)
        return NativeModel(workspace, self._solver.clock, metric, point, cuts.table, cuts.weights, extra_rows)

    # The members up to `step` are used only without compiled code.

    @cached_property
    def _rows(self) -> Matrix | Rows:
        """The gradients of the constraints, of their further pieces, and of the terms of f."""
        blocks = [part.rows for part in (self._piece_rows, self._terms) if part is not None]
        return stack(self._at.jacobian, *blocks) if blocks else self._at.jacobian

    @cached_property
    def _values(self) -> Vector:
        blocks = [part.values for part in (self._piece_rows, self._terms) if part is not None]
        return np.concatenate([self._at.c, *blocks]) if blocks else self._at.c

    @property
    def _first_term(self) -> int:
        """The index of the first gradient that belongs to a term."""
        return len(self._gradients) - (0 if self._terms is None else len(self._terms))

    @cached_property
    def _gradients(self) -> Matrix | Rows:
        return stack(self._cuts.slopes, self._rows)

    @cached_property
    def _form(self) -> QuadraticForm:
        reusable = len(self._gradients) >= MIN_GRADIENTS_WITH_KEYS and self._terms is None
        keys = _keys(self._at, self._cuts, self._piece_rows) if reusable else None
        return self._hessian.form(self._gradients, keys)

    @property
    def _matrix(self) -> Matrix | Product:
        return self._form.matrix

    @cached_property
    def _first_start(self) -> Vector:
        start, cuts = np.zeros(len(self._gradients)), self._cuts
        start[1 : self._cut_count] = cuts.weights
        start[0] = max(0.0, 1.0 - float(cuts.weights.sum()))
        if self._multipliers is not None and len(self._multipliers) == self._constraint_count:
            start[self._cut_count : self._cut_count + self._constraint_count] = self._multipliers
        if self._piece_rows is not None:
            start[self._cut_count + self._constraint_count : self._first_term] = self._piece_rows.weights
        if self._terms is not None:
            start[self._first_term :] = self._terms.start
        return start

    def _session(self, weight: float, values: Vector) -> tuple[NDArray[np.intp], Session]:
        """The programs without cuts that cannot be active for this weight, and the entries that remain.

        Any weights on the simplex give an upper bound p of the dual optimum. If a cut is active, its error is at most |r|
        times its own length in the metric of H plus 2p, where ½|r|² ≤ p. With constraints p grows by ρ times the violation
        at x of all rows, and the error may be larger by |r| times the length of
        the gradient at x, since a step that increases the violation must decrease the objective by as much.
        """
        count = self._cut_count
        keep = np.ones(len(self._gradients), dtype=bool)
        if count > MAX_UNSCREENED_CUTS and self._shift is None and self._terms is None:
            squares = _diagonal(self._matrix)[:count]
            hint = np.concatenate([[max(MIN_WEIGHT_OF_OWN_CUT, 1.0 - float(self._cuts.weights.sum()))], self._cuts.weights])
            hint /= hint.sum()
            bounds = [0.5 * squares[0], 0.5 * _square(self._matrix, hint) + float(hint @ self._cuts.errors)]
            violation = float(
                np.abs(values[: self._at.equalities]).sum() + np.maximum(values[self._at.equalities :], 0.0).sum()
            )
            bound = 2.0 * (max(min(bounds), 0.0) + weight * violation)
            lengths = np.sqrt(np.maximum(squares, 0.0))
            slack = bound + (np.sqrt(bound) * lengths[0] if len(values) else 0.0)
            keep[:count] = self._cuts.errors <= ROUNDING_MARGIN * (np.sqrt(bound) * lengths + slack)
        key = keep.tobytes()
        if key not in self._sessions:
            entries = np.nonzero(keep)[0]
            balls = None if self._terms is None else _balls(self._terms, self._first_term)
            self._sessions[key] = (entries, self._solver.session(_part(self._matrix, entries), int(keep[:count].sum()), balls))
        return self._sessions[key]

    def step(self, weight: float) -> Step:
        """The step for penalty weight ρ."""
        if self._native is not None:
            result = self._native.step(weight, self._last_solution, self._last_weight)
            if result is not None:
                return self._from_native(result, weight)
        return self._python_step(weight)

    def _python_step(self, weight: float) -> Step:
        """`step` without compiled code."""
        values = self._values
        lower, upper = self._box(weight)
        entries, session = self._session(weight, values)
        linear = np.concatenate([self._cuts.errors, -values])
        if self._shift is not None:
            linear -= self._gradients @ self._shift
        start = self._start(weight)
        solution = session.solve(linear[entries], lower[entries], upper[entries], start[entries])
        y = np.zeros(len(lower))
        y[entries] = solution.y
        self._last_solution, self._last_weight = y, weight
        return self._step_from_dual(y, weight, solution.trusted)

    def _from_native(self, result: NativeStep, weight: float) -> Step:
        """The step that compiled code computed."""
        y, count, counts = result.y, self._cut_count, self._solver.counts
        self._last_solution, self._last_weight = y, weight
        counts.solved += 1
        counts.warm += len(y) > 2
        return Step(
            result.direction, result.gradient, result.objective_gradient, y[:count], result.multipliers, y[count:], weight,
            result.change, result.violation, result.change + weight * (result.violation - self._at.total_violation),
            result.error, True,
        )  # fmt: skip

    def _start(self, weight: float) -> Vector:
        """The start of a program: the last solution, with entries at the old bound ρ moved to the new one."""
        start = (self._first_start if self._last_solution is None else self._last_solution).copy()
        rows = start[self._cut_count : self._first_term]
        limited = np.abs(rows) >= self._last_weight
        rows[limited] = np.sign(rows[limited]) * weight
        return start

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step that minimizes the violation alone."""
        if self._native is not None:
            result = self._native.reference(weight, self._last_solution, self._last_weight)
            if result is not None:
                return result
        lower, upper = self._box(weight)
        count, rows = self._cut_count, slice(self._cut_count, self._first_term)
        session = self._solver.session(_part(self._matrix, np.arange(rows.start, rows.stop)))
        linear = -self._values if self._shift is None else -self._values - self._rows @ self._shift
        y = np.zeros(len(lower) - count)  # terms of f do not enter
        part = slice(0, rows.stop - count)
        y[part] = session.solve(linear[part], lower[rows], upper[rows], self._start(weight)[rows]).y
        step = self._form.step(y, first=count)
        return self.violation(-step if self._shift is None else self._shift - step)

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the linearized constraints after a step: the sum, or the largest."""
        parts = self.violations(direction)
        return float(parts.max(initial=0.0) if largest else parts.sum())

    def violations(self, direction: Vector) -> Vector:
        """Violation of each linearized constraint after a step."""
        at, piece_rows = self._at, self._piece_rows
        values = at.c + at.jacobian @ direction
        parts = np.concatenate([np.abs(values[: at.equalities]), np.maximum(values[at.equalities :], 0.0)])
        if piece_rows is not None:
            np.maximum.at(parts, piece_rows.index, piece_rows.values + piece_rows.rows @ direction)
        return parts

    def _box(self, weight: float) -> tuple[Vector, Vector]:
        count, total, equalities = self._cut_count, len(self._gradients), self._at.equalities
        lower, upper = np.zeros(total), np.full(total, weight)
        upper[:count] = 1.0
        lower[count : count + equalities] = -weight
        if self._terms is not None:
            lower[self._first_term :], upper[self._first_term :] = -self._terms.limits, self._terms.limits
        return lower, upper

    def _step_from_dual(self, y: Vector, weight: float, trusted: bool) -> Step:
        count, own, terms, end = self._cut_count, len(self._at.c), self._terms, self._first_term
        objective_gradient = y[:count] @ self._cuts.slopes
        if terms is not None:
            objective_gradient = objective_gradient + y[end:] @ terms.rows
        if not len(self._rows):
            gradient = objective_gradient
        elif isinstance(self._gradients, Rows):
            gradient = y[:count] @ self._cuts.slopes + y[count:] @ self._rows
        else:
            gradient = y @ self._gradients
        direction = self._form.step(y, combined=gradient)
        np.negative(direction, out=direction)
        if self._shift is not None:
            direction += self._shift
        multipliers = y[count : count + own].copy()
        if self._piece_rows is not None:
            np.add.at(multipliers, self._piece_rows.index, self._piece_rows.signs * y[count + own : end])
        if isinstance(self._gradients, Rows) and isinstance(self._matrix, np.ndarray) and self._shift is None:
            along = -(self._matrix[:count] @ y)  # slopes · direction, without touching vectors of size n
        else:
            along = self._cuts.slopes @ direction
        change = float((along - self._cuts.errors).max())
        error = float(y[:count] @ self._cuts.errors)
        shares = None
        if terms is not None:
            change, error = change + terms.change(direction), error + terms.gap(y[end:])
            shares = terms.shares(y[:count], y[end:])
        violation = self.violation(direction)
        return Step(
            direction=direction,
            gradient=gradient,
            objective_gradient=objective_gradient,
            weights=y[:count],
            multipliers=multipliers,
            row_multipliers=y[count:end],
            weight=weight,
            objective_change=change,
            predicted_violation=violation,
            decrease=change + weight * (violation - self._at.total_violation),
            error=error,
            trusted=trusted,
            shares=shares,
        )

    def with_direction(self, step: Step, direction: Vector) -> Step:
        """The step with another direction and the model's predictions for it."""
        change = float((self._cuts.slopes @ direction - self._cuts.errors).max())
        change += 0.0 if self._terms is None else self._terms.change(direction)
        violation = self.violation(direction)
        decrease = change + step.weight * (violation - self._at.total_violation)
        return step._replace(
            direction=direction, objective_change=change, predicted_violation=violation, decrease=decrease
        )  # fmt: skip


def _keys(at: Trial, cuts: Cuts, piece_rows: PieceRows | None) -> NDArray[np.int64]:
    own = at.keys
    return np.concatenate([own[:1], cuts.keys, own[1:], *([] if piece_rows is None else [piece_rows.keys])])


def _balls(terms: LocalTerms, before: int) -> NDArray[np.int64] | None:
    """The ball of each entry of a program, with terms last; None if no entry is in a ball."""
    return np.concatenate([np.full(before, NO_BALL), terms.balls]) if (terms.balls != NO_BALL).any() else None


def _diagonal(matrix: Matrix | Product) -> Vector:
    return matrix.diagonal if isinstance(matrix, Product) else matrix.diagonal()


def _square(matrix: Matrix | Product, weights: Vector) -> float:
    """The squared length of a combination of the first rows."""
    count = len(weights)
    if isinstance(matrix, Product):
        return float((weights @ matrix.left[:count]) @ (weights @ matrix.right[:count]))
    return float(weights @ matrix[:count, :count] @ weights)


def _part(matrix: Matrix | Product, entries: NDArray[np.intp]) -> Matrix | Product:
    if len(entries) == len(matrix):
        return matrix
    return matrix.part(entries) if isinstance(matrix, Product) else matrix[entries[:, None], entries]


class ModelLike(Protocol):
    """The interface of models that steering and iterations use."""

    def step(self, weight: float) -> Step:
        """The step for a penalty weight."""

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step that minimizes the violation alone."""

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the linearized constraints after a step."""

    def violations(self, direction: Vector) -> Vector:
        """Violation of each linearized constraint after a step."""
