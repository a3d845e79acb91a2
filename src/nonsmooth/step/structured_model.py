"""The local model with the kinks that can be seen, of which only those that a step meets are looked at.

A step is computed with the nearest kinks; where it would cross others, these are added, until it crosses none. What is found is
the step of the model with all of them, at the price of those that are near.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.step.model import ModelLike, Step
from nonsmooth.structure import LocalTerms, Reading

Vector = NDArray[np.float64]

FEW = 50
"""So many kinks are looked at in any case, and twice as many as there are variables."""
MOST_ROUNDS = 30
"""After so many all kinks are looked at."""
NEGLIGIBLE = 1e-12
"""Part of the predicted decrease up to which what a kink adds to the model does not count."""


class StructuredModel:
    """The model at one point with its visible kinks; `build` makes that of some of them."""

    def __init__(self, reading: Reading, build: Callable[[LocalTerms], ModelLike]) -> None:
        self._reading, self._build = reading, build
        terms = reading.terms
        lengths = np.linalg.norm(terms.rows, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.abs(terms.values) / lengths
        self._batch = 2 * terms.rows.shape[1] + FEW
        self._chosen = np.ones(len(terms), dtype=bool)
        if len(terms) > self._batch:
            self._chosen[:] = False
            self._chosen[np.argsort(distances, kind="stable")[: self._batch]] = True
        self._choose(None)

    def _choose(self, shares: Vector | None) -> None:
        self._terms = LocalTerms(self._reading, self._chosen, shares)
        self._model = self._build(self._terms)

    def step(self, weight: float) -> Step:
        """The step for penalty weight ρ."""
        for number in range(MOST_ROUNDS):
            step = self._model.step(weight)
            if self._chosen.all():
                break
            excess = self._terms.excess(step.direction)
            met = np.nonzero(excess > NEGLIGIBLE * abs(step.objective_change))[0]
            if not len(met):
                break
            if number == MOST_ROUNDS - 2:
                self._chosen[:] = True
            else:
                self._chosen[met[np.argsort(-excess[met], kind="stable")[: self._batch]]] = True
            self._choose(step.shares)
        return step

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step that looks at nothing else."""
        return self._model.reference(weight)

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the linearized constraints after a step."""
        return self._model.violation(direction, largest=largest)

    def violations(self, direction: Vector) -> Vector:
        """Violation of each linearized constraint after a step."""
        return self._model.violations(direction)
