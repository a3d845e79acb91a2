"""Build the model at the current point and compute the step that it proposes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.evaluate.box import Box
from nonsmooth.hessian import FullMemory, InverseHessian
from nonsmooth.kinks.bundle import Cuts, VisibleCuts, own_cut
from nonsmooth.kinks.pieces import PieceRows
from nonsmooth.options import Options
from nonsmooth.qp import QPSolver
from nonsmooth.report.clock import Clock, Phase
from nonsmooth.step.box_model import BoxModel
from nonsmooth.step.model import Model, ModelLike, Step
from nonsmooth.step.steering import Steering
from nonsmooth.step.structured_model import StructuredModel
from nonsmooth.structure import LocalTerms, Reading

if TYPE_CHECKING:
    from nonsmooth.loop.state import State

Vector = NDArray[np.float64]
MAX_NESTED_POINTS = 3
"""The number of points on nested kinks after which a run continues without visible kinks."""
NESTED_KINK_DISTANCE = 1e-9
"""The distance within which a kink counts as active when nested kinks are checked."""


class Proposer:
    """Builds local models and computes their steps."""

    def __init__(
        self, options: Options, steering: Steering, solver: QPSolver, clock: Clock | None = None, box: Box | None = None
    ) -> None:
        self._options, self._steering, self._solver, self._box = options, steering, solver, box
        self.timer = (clock or Clock()).phase(Phase.DIRECTIONS)

    def propose(self, state: State, weight: float | None = None, *, use_bundle: bool | None = None) -> tuple[ModelLike, Step]:
        """The model and its step at the current point, for the penalty weight of the run or for another.

        Gradients of earlier points are used near kinks only: elsewhere they would shorten the step.
        """
        if weight is None:
            state.remember_hints()
        at = state.current
        kinked = state.near_kink if use_bundle is None else use_bundle
        with self.timer:
            metric, reading = self.metric(state), visible_kinks(state)
            if reading is not None and reading.constraints is not None:
                state.pieces.clear()  # visible kinks need no stored pieces
            stored = state.pieces.at(at) if len(state.pieces) else None
            if reading is None:
                cuts = state.bundle.cuts(at) if kinked and len(state.bundle) else own_cut(at)
                model = self.model(at, cuts, stored, metric, state.multipliers)
            else:

                def build(
                    at: Trial, terms: LocalTerms | None, pieces: PieceRows | None, multipliers: Vector | None
                ) -> ModelLike:
                    cuts = own_cut(at) if terms is None else VisibleCuts(at, terms.slopes, terms.errors, terms.weights)
                    start = state.multipliers if multipliers is None else multipliers
                    return self.model(at, cuts, stored or pieces, metric, start, terms=terms)

                model = StructuredModel(at, reading, build)
            step = self._steering.step(state, model, state.weight if weight is None else weight)
        self._remember(state, step)
        return model, step

    def retry(self, state: State, model: ModelLike, step: Step) -> Step:
        """The step of the same model for a larger penalty weight."""
        with self.timer:
            step = self._steering.retry(state, model, step)
        self._remember(state, step)
        return step

    def model(
        self,
        at: Trial,
        cuts: Cuts,
        pieces: PieceRows | None,
        metric: InverseHessian,
        multipliers: Vector | None = None,
        *,
        terms: LocalTerms | None = None,
    ) -> ModelLike:
        """The model at a point, from some cuts and visible terms."""
        if self._box is None:
            return Model(at, cuts, pieces, metric, self._solver, multipliers=multipliers, terms=terms)
        return BoxModel(at, cuts, pieces, metric, self._solver, self._box, multipliers=multipliers, terms=terms)

    def metric(self, state: State) -> InverseHessian:
        """The inverse Hessian for models: the quasi-Newton matrix, regularized if the options require it."""
        threshold = self._options.regularization_threshold
        if math.isfinite(threshold) and isinstance(state.hessian, FullMemory):
            return state.hessian.regularized(threshold, lower_large=self._options.regularize_large_eigenvalues)
        return state.hessian

    @staticmethod
    def _remember(state: State, step: Step) -> None:
        """Store the multipliers that warm-start the next programs."""
        own = len(state.current.c)
        if step.shares is None and len(step.weights) == len(state.bundle) + 1:
            state.bundle.weights = step.weights[1:]
        state.multipliers = step.row_multipliers[:own]
        if len(step.row_multipliers) == own + len(state.pieces):
            state.pieces.weights = step.row_multipliers[own:]


def visible_kinks(state: State) -> Reading | None:
    """The kinks read at the current point, if the run uses them and can use them here."""
    reading = state.current.reading if state.structured else None
    if reading is None or reading.hidden or not reading.finite:
        return None
    constraints = reading.constraints
    if constraints is not None:
        usable = constraints.without_inner(constraints.terms.at_kink(NESTED_KINK_DISTANCE)) if constraints.finite else None
        reading = replace(reading, constraints=usable)
    if not len(reading.terms) and reading.constraints is None:
        return None
    if not reading.is_nested(reading.terms.at_kink(NESTED_KINK_DISTANCE)):
        return reading
    state.nested_points += 1
    state.structured = state.nested_points <= MAX_NESTED_POINTS
    return None
