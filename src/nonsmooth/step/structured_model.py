"""The local model with the kinks that can be seen, of which only those that a step meets are looked at.

A step is computed with the nearest kinks of f; where it would cross others, these are added. Constraints are linear at first;
where a step leads to another piece of one, that piece is added. What is found in the end is the step of the model with all
kinks, at the price of those that are near. Kinks that bend constraints downwards are on one side each: those to which the step
leads, which is found in a few turns.
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

FEW = 50
"""So many kinks are looked at in any case, and twice as many as there are variables."""
MOST_ROUNDS = 30
"""After so many all kinks of f are looked at."""
MOST_PIECE_ROUNDS = 200
"""After so many the pieces that are known have to do."""
MOST_TURNS = 5
"""How often kinks that bend constraints downwards are put on other sides."""
NEGLIGIBLE = 1e-12
"""Part of the predicted decrease up to which what a kink adds to the model does not count."""
ROUNDING = 1e-14
"""The same as part of the values of constraints."""


class Build(Protocol):
    """Makes the model of some kinks of f and some pieces of constraints."""

    def __call__(
        self, at: Trial, terms: LocalTerms | None, pieces: PieceRows | None, multipliers: Vector | None
    ) -> ModelLike:  # fmt: skip
        """The model; the multipliers of the constraints at x are those of an earlier step."""


class StructuredModel:
    """The model at one point with its visible kinks."""

    def __init__(self, at: Trial, reading: Reading, build: Build) -> None:
        self._at, self._reading, self._build = at, reading, build
        terms = reading.terms
        lengths = np.linalg.norm(terms.rows, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.abs(terms.values) / lengths
        self._batch = 2 * terms.rows.shape[1] + FEW
        self._chosen = np.ones(len(terms), dtype=bool)
        if len(terms) > self._batch:
            self._chosen[:] = False
            self._chosen[np.argsort(distances, kind="stable")[: self._batch]] = True
        self._pieces = None if reading.constraints is None else _KnownPieces(at, reading.constraints)
        self._choose(None)

    def _choose(self, last: Step | None) -> None:
        """Build the model anew, to begin where the last one ended."""
        shares, multipliers = (None, None) if last is None else (last.shares, last.rows[: len(self._at.c)])
        terms = self._reading.terms
        self._terms = LocalTerms(self._reading, self._chosen, shares) if len(terms) else None
        pieces = None if self._pieces is None else self._pieces.known(None if last is None else last.rows)
        self._model = self._build(self._at if self._pieces is None else self._pieces.at, self._terms, pieces, multipliers)

    def step(self, weight: float) -> Step:
        """The step for penalty weight ρ."""
        step = self._step(weight)
        for _ in range(MOST_TURNS):
            if self._pieces is None or not self._pieces.turn(step.direction):
                break
            self._choose(None)
            step = self._step(weight)
        return step

    def _step(self, weight: float) -> Step:
        """The same with kinks that bend constraints downwards as they are."""
        for number in range(MOST_PIECE_ROUNDS):
            step = self._model.step(weight)
            crossing = self._meet_terms(step, everything=number >= MOST_ROUNDS - 2)
            if not (self._meet_pieces(step) or crossing):
                break
            self._choose(step)
        if self._pieces is None:
            return step
        violation = self.violation(step.direction)  # also of pieces for which there was no time
        decrease = step.objective_change + weight * (violation - self._at.total_violation)
        shares = self._pieces.shares(step.rows)
        return step._replace(predicted_violation=violation, decrease=decrease, piece_shares=shares)

    def _meet_terms(self, step: Step, *, everything: bool) -> bool:
        """Choose the kinks of f that a step would cross."""
        if self._terms is None or self._chosen.all():
            return False
        excess = self._terms.excess(step.direction)
        met = np.nonzero(excess > NEGLIGIBLE * abs(step.objective_change))[0]
        if everything:
            self._chosen[:] = True
        else:
            self._chosen[met[np.argsort(-excess[met], kind="stable")[: self._batch]]] = True
        return len(met) > 0

    def _meet_pieces(self, step: Step) -> bool:
        """Add the pieces of constraints to which a step would lead."""
        return self._pieces is not None and self._pieces.add(step, self._model.violations(step.direction))

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step that looks at nothing else."""
        return self._model.reference(weight)

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the modeled constraints after a step."""
        parts = self.violations(direction)
        return float(parts.max(initial=0.0) if largest else parts.sum())

    def violations(self, direction: Vector) -> Vector:
        """Violation of each modeled constraint after a step."""
        parts = self._model.violations(direction)
        if self._pieces is not None:
            kinked = self._pieces.kinked
            parts[kinked] = self._pieces.violations(direction)[kinked]
        return parts


class _KnownPieces:
    """The pieces of constraints that the model at one point knows of."""

    def __init__(self, at: Trial, reading: ConstraintReading) -> None:
        self._reading, self.kinked = reading, reading.kinked
        self._given = self.at = at
        """The point with the pieces at x as its constraints."""
        self._resting = reading.sides
        self._downwards = (~reading.upwards & (reading.sensitivities != 0.0)).any(axis=0)
        self._forget()

    def _forget(self) -> None:
        self._here = self._reading.pieces_here(self._resting)
        self._kept = Linearizations(len(self.at.x), capacity=max(1, MOST_PIECE_ROUNDS * len(self.kinked)))
        self._index: list[int] = []
        self._slopes: list[Vector] = []
        self._known: set[tuple[int, bytes]] = set()

    def turn(self, direction: Vector) -> bool:
        """Put the kinks that bend constraints downwards on the sides to which a step leads; whether this changes anything.

        What bends downwards lies below each of its tangents, so that the step stays possible, and there may be a better one.
        """
        resting = self._reading.sides_after(direction)
        if np.array_equal(resting[self._downwards], self._resting[self._downwards]):
            return False
        self._resting = resting
        self._forget()
        given, here = self._given, self._here
        rows = self._reading.rows(np.arange(len(given.c)), here.slopes)
        self.at = Trial.stored(given.x, given.f, here.values, given.equalities, given.gradient, rows)
        return True

    def known(self, rows: Vector | None) -> PieceRows | None:
        """All of them as rows of a program, with the multipliers that earlier ones had."""
        if not self._index:
            return None
        weights = np.zeros(len(self._index))
        if rows is not None:
            weights[: len(rows) - len(self.at.c)] = rows[len(self.at.c) :]
        return PieceRows(self.at, self._kept, np.array(self._index, dtype=np.intp), np.ones(len(weights)), weights)

    def violations(self, direction: Vector) -> Vector:
        """Violation of each constraint after a step, as far as kinks are seen."""
        reached, equalities = self._reading.pieces(direction).reached, self.at.equalities
        return np.concatenate([np.abs(reached[:equalities]), np.maximum(reached[equalities:], 0.0)])

    def add(self, step: Step, modeled: Vector) -> bool:
        """Add the pieces to which a step leads, where the model says too little of them."""
        reading, pieces = self._reading, self._reading.pieces(step.direction, self._resting)
        excess = np.maximum(pieces.reached, 0.0) - modeled
        least = NEGLIGIBLE * abs(step.decrease) / step.weight + ROUNDING * (1.0 + np.abs(self.at.c))
        met = self.kinked[(excess > least)[self.kinked]]
        # What is known is added no second time: it is above the model by rounding errors alone.
        keys = [(index, pieces.slopes[index].tobytes()) for index in met.tolist()]
        new = np.array([key not in self._known for key in keys], dtype=bool)
        met = met[new]
        for index, row in zip(met.tolist(), reading.rows(met, pieces.slopes[met]), strict=True):
            self._kept.add(self.at.x, float(pieces.values[index]), row)
            self._index.append(index)
            self._slopes.append(pieces.slopes[index])
        self._known.update(keys)
        return len(met) > 0

    def shares(self, rows: Vector) -> Matrix:
        """Where between their slopes the multipliers of rows put the kinks, times the multiplier of each constraint."""
        reading, own = self._reading, len(self.at.c)
        shares = rows[:own, None] * reading.shares(self._here.slopes)
        used = len(rows) - own  # others may have been found when there was no time for them
        if used:
            np.add.at(shares, np.array(self._index[:used]), rows[own:, None] * reading.shares(np.array(self._slopes[:used])))
        return shares
