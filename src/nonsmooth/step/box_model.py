"""The local model within a box: an active-set method over faces of the box finds the bounds that are active for its step.

On a face some variables move to their bounds and the others minimize the model. The quadratic program on a face is the one
without a box, with another inverse Hessian (`hessian/face`). Variables whose step leaves the box join the face, and variables
that the model would move back into the box leave it, several at a time, until neither happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.hessian import InverseHessian
from nonsmooth.hessian.face import Face
from nonsmooth.kinks.bundle import Cuts
from nonsmooth.kinks.pieces import PieceRows
from nonsmooth.qp import QPSolver
from nonsmooth.step.model import Model, Step
from nonsmooth.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from nonsmooth.structure import LocalTerms

Vector = NDArray[np.float64]


class BoxModel:
    """Like `Model`, for steps that stay in a box."""

    def __init__(
        self,
        at: Trial,
        cuts: Cuts,
        piece_rows: PieceRows | None,
        hessian: InverseHessian,
        solver: QPSolver,
        box: Box,
        *,
        multipliers: Vector | None = None,
        terms: LocalTerms | None = None,
    ) -> None:
        self._terms = terms
        self._at, self._cuts, self._piece_rows, self._hessian, self._solver = at, cuts, piece_rows, hessian, solver
        self._multipliers = multipliers
        self._low, self._high = box.lower - at.x, box.upper - at.x
        self._pinned = box.lower == box.upper
        gradient = at.gradient
        if multipliers is not None and len(multipliers) == len(at.c):
            gradient = gradient + multipliers @ at.jacobian
        self._sides = np.where((self._low >= 0) & (gradient > 0), -1, np.where((self._high <= 0) & (gradient < 0), 1, 0))
        """−1 for variables at their lower bound, 1 for those at their upper bound, 0 for free variables."""
        self._sides[self._pinned] = -1
        self._face_model: tuple[bytes, Model, Face] | None = None

    def _face_and_model(self) -> tuple[Model, Face]:
        key = self._sides.tobytes()
        if self._face_model is None or self._face_model[0] != key:
            fixed = np.nonzero(self._sides)[0]
            changes = np.where(self._sides[fixed] < 0, self._low[fixed], self._high[fixed])
            face = Face(self._hessian, fixed, changes)
            hessian = face if len(fixed) else self._hessian
            shift = face.displacement if changes.any() else None
            model = Model(
                self._at, self._cuts, self._piece_rows, hessian, self._solver,
                multipliers=self._multipliers, shift=shift, terms=self._terms,
            )  # fmt: skip
            self._face_model = key, model, face
        return self._face_model[1], self._face_model[2]

    def step(self, weight: float) -> Step:
        """The step for penalty weight ρ."""
        # In the second half of the iterations faces only grow; after the last one the step is clipped to the box.
        for count in range(THRESHOLDS.max_faces):
            model, face = self._face_and_model()
            step = model.step(weight)
            slopes = np.zeros(len(self._sides))
            slopes[self._sides != 0] = face.multipliers(step.gradient)
            free = self._sides == 0
            low, high = free & (step.direction < self._low), free & (step.direction > self._high)
            back = ((self._sides < 0) & (slopes < 0)) | ((self._sides > 0) & (slopes > 0))
            back &= ~self._pinned & (2 * count < THRESHOLDS.max_faces)
            if not (low.any() or high.any() or back.any()):
                return step._replace(gradient=step.gradient - slopes)  # so B·d = −gradient holds for fixed variables too
            sides = self._sides.copy()
            sides[low], sides[high], sides[back] = -1, 1, 0
            self._sides = sides
        direction = np.minimum(np.maximum(step.direction, self._low), self._high)
        return model.with_direction(step, direction)._replace(gradient=step.gradient - slopes, curvature_known=False)

    def reference(self, weight: float) -> float:
        """Predicted sum of violations of the step on the face that minimizes the violation alone."""
        return self._face_and_model()[0].reference(weight)

    def violation(self, direction: Vector, *, largest: bool = False) -> float:
        """Violation of the linearized constraints after a step: the sum, or the largest."""
        return self._face_and_model()[0].violation(direction, largest=largest)

    def violations(self, direction: Vector) -> Vector:
        """Violation of each linearized constraint after a step."""
        return self._face_and_model()[0].violations(direction)
