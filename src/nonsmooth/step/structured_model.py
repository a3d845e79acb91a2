"""The local model with visible kinks, which includes only the kinks that a step reaches.

A step is computed with the nearest kinks of f; kinks that it would cross are added. Constraints are linear at first; if a step
reaches another piece of one, that piece is added. The final step is that of the model with all kinks, at the cost of the
nearby ones. Concave kinks of constraints are linearized on one side each, the side to which the step leads; a few rounds
determine it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.kinks.linearizations import Linearizations
from nonsmooth.kinks.pieces import PieceRows
from nonsmooth.step.model import ModelLike, Step
from nonsmooth.structure import ConstraintReading, LocalTerms, Reading

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MIN_KINKS_PER_BATCH = 50
"""A batch of kinks has this many, plus twice the number of variables."""
MAX_KINK_ROUNDS = 30
"""The number of rounds after which all kinks of f are included."""
MAX_PIECE_ROUNDS = 200
"""The number of rounds after which no further pieces of constraints are added."""
MAX_SIDE_CHANGES = 5
"""How often the sides of concave kinks of constraints are changed."""
NEGLIGIBLE_DECREASE_FRACTION = 1e-12
"""A kink that adds less than this fraction of the predicted decrease to the model is not added."""
NEGLIGIBLE_VALUE_FRACTION = 1e-14
"""The same, as a fraction of the values of constraints."""


class BuildModel(Protocol):
    """Builds the model from some kinks of f and some pieces of constraints."""

    def __call__(
        self, at: Trial, terms: LocalTerms | None, pieces: PieceRows | None, multipliers: Vector | None
    ) -> ModelLike:  # fmt: skip
        """The model; `multipliers` are those of the constraints at x from an earlier step."""


class StructuredModel:
    """The model at one point with its visible kinks."""

    def __init__(self, at: Trial, reading: Reading, build: BuildModel) -> None:
        self._at, self._reading, self._build = at, reading, build
        terms = reading.terms
        lengths = np.linalg.norm(terms.rows, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.abs(terms.values) / lengths
        self._batch = 2 * terms.rows.shape[1] + MIN_KINKS_PER_BATCH
        self._chosen = np.ones(len(terms), dtype=bool)
        if len(terms) > self._batch:
            self._chosen[:] = False
            self._chosen[np.argsort(distances, kind="stable")[: self._batch]] = True
        self._pieces = None if reading.constraints is None else _PieceModel(at, reading.constraints)
        self._rebuild(None)

    def _rebuild(self, last: Step | None) -> None:
        """Rebuild the model, warm-started from the last step."""
        shares, multipliers = (None, None) if last is None else (last.shares, last.row_multipliers[: len(self._at.c)])
        terms = self._reading.terms
        self._terms = LocalTerms(self._reading, self._chosen, shares) if len(terms) else None
        pieces = None if self._pieces is None else self._pieces.piece_rows(None if last is None else last.row_multipliers)
        self._model = self._build(self._at if self._pieces is None else self._pieces.at, self._terms, pieces, multipliers)

    def step(self, weight: float) -> Step:
        """The step for penalty weight ρ."""
        step = self._step(weight)
        for _ in range(MAX_SIDE_CHANGES):
            if self._pieces is None or not self._pieces.change_sides(step.direction):
                break
            self._rebuild(None)
            step = self._step(weight)
        return step

    def _step(self, weight: float) -> Step:
        """The step with concave kinks of constraints on their present sides."""
        for number in range(MAX_PIECE_ROUNDS):
            step = self._model.step(weight)
            crossing = self._add_crossed_terms(step, everything=number >= MAX_KINK_ROUNDS - 2)
            if not (self._add_reached_pieces(step) or crossing):
                break
            self._rebuild(step)
        if self._pieces is None:
            return step
        violation = self.violation(step.direction)  # includes pieces that were not added
        decrease = step.objective_change + weight * (violation - self._at.total_violation)
        shares = self._pieces.shares(step.row_multipliers)
        return step._replace(predicted_violation=violation, decrease=decrease, piece_shares=shares)

    def _add_crossed_terms(self, step: Step, *, everything: bool) -> bool:
        """Include the kinks of f that a step would cross."""
        if self._terms is None or self._chosen.all():
            return False
        excess = self._terms.excess(step.direction)
        new = np.nonzero(excess > NEGLIGIBLE_DECREASE_FRACTION * abs(step.objective_change))[0]
        if everything:
            self._chosen[:] = True
        else:
            self._chosen[new[np.argsort(-excess[new], kind="stable")[: self._batch]]] = True
        return len(new) > 0

    def _add_reached_pieces(self, step: Step) -> bool:
        """Add the pieces of constraints that a step would reach."""
        return self._pieces is not None and self._pieces.add(step, self._model.violations(step.direction))

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step that minimizes the violation alone."""
        return self._model.reference(weight)

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the modeled constraints after a step."""
        parts = self.violations(direction)
        return float(parts.max(initial=0.0) if largest else parts.sum())

    def violations(self, direction: Vector) -> Vector:
        """Violation of each modeled constraint after a step."""
        parts = self._model.violations(direction)
        if self._pieces is not None:
            kinked = self._pieces.kinked_constraints
            parts[kinked] = self._pieces.violations(direction)[kinked]
        return parts


class _PieceModel:
    """The pieces of constraints in the model at one point."""

    def __init__(self, at: Trial, reading: ConstraintReading) -> None:
        self._reading, self.kinked_constraints = reading, reading.kinked_constraints
        self._point = self.at = at
        """The point with the active pieces at x as its constraints."""
        self._chosen_slopes = reading.slopes_at_x
        self._concave = (~reading.convex & (reading.sensitivities != 0.0)).any(axis=0)
        self._reset()

    def _reset(self) -> None:
        self._pieces_at_x = self._reading.pieces_at_x(self._chosen_slopes)
        self._linearizations = Linearizations(len(self.at.x), capacity=max(1, MAX_PIECE_ROUNDS * len(self.kinked_constraints)))
        self._index: list[int] = []
        self._slopes: list[Vector] = []
        self._piece_keys: set[tuple[int, bytes]] = set()

    def change_sides(self, direction: Vector) -> bool:
        """Move concave kinks of constraints to the sides to which a step leads; whether this changes anything.

        A concave function lies below each of its tangents, so that the step remains feasible and may improve.
        """
        slopes = self._reading.slopes_after(direction)
        if np.array_equal(slopes[self._concave], self._chosen_slopes[self._concave]):
            return False
        self._chosen_slopes = slopes
        self._reset()
        point, pieces = self._point, self._pieces_at_x
        rows = self._reading.rows(np.arange(len(point.c)), pieces.slopes)
        self.at = Trial.stored(point.x, point.f, pieces.values, point.equalities, point.gradient, rows)
        return True

    def piece_rows(self, rows: Vector | None) -> PieceRows | None:
        """All pieces as rows of a program, with the multipliers from the last step."""
        if not self._index:
            return None
        weights = np.zeros(len(self._index))
        if rows is not None:
            weights[: len(rows) - len(self.at.c)] = rows[len(self.at.c) :]
        return PieceRows(self.at, self._linearizations, np.array(self._index, dtype=np.intp), np.ones(len(weights)), weights)

    def violations(self, direction: Vector) -> Vector:
        """Violation of each constraint after a step, with all visible kinks."""
        values, equalities = self._reading.pieces(direction).values_after_step, self.at.equalities
        return np.concatenate([np.abs(values[:equalities]), np.maximum(values[equalities:], 0.0)])

    def add(self, step: Step, modeled: Vector) -> bool:
        """Add the pieces that a step reaches and the model underestimates; whether there are any."""
        reading, pieces = self._reading, self._reading.pieces(step.direction, self._chosen_slopes)
        excess = np.maximum(pieces.values_after_step, 0.0) - modeled
        negligible_decrease = NEGLIGIBLE_DECREASE_FRACTION * abs(step.decrease) / step.weight
        negligible = negligible_decrease + NEGLIGIBLE_VALUE_FRACTION * (1.0 + np.abs(self.at.c))
        reached = self.kinked_constraints[(excess > negligible)[self.kinked_constraints]]
        # A known piece is never added again: it exceeds the model by rounding errors alone.
        keys = [(index, pieces.slopes[index].tobytes()) for index in reached.tolist()]
        reached = reached[np.array([key not in self._piece_keys for key in keys], dtype=bool)]
        for index, row in zip(reached.tolist(), reading.rows(reached, pieces.slopes[reached]), strict=True):
            self._linearizations.add(self.at.x, float(pieces.values[index]), row)
            self._index.append(index)
            self._slopes.append(pieces.slopes[index])
        self._piece_keys.update(keys)
        return len(reached) > 0

    def shares(self, rows: Vector) -> Matrix:
        """The shares of the kinks that follow from row multipliers, times the multiplier of each constraint."""
        reading, own = self._reading, len(self.at.c)
        shares = rows[:own, None] * reading.shares(self._pieces_at_x.slopes)
        used = len(rows) - own  # pieces added after the last round are not in the step
        if used:
            np.add.at(shares, np.array(self._index[:used]), rows[own:, None] * reading.shares(np.array(self._slopes[:used])))
        return shares
