"""The model at the current point, and the step that it proposes."""

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
MOST_NESTED = 3
"""After so many points on kinks within the arguments of others, a run goes on without the kinks that it sees."""
NEAR = 1e-9
"""Distance from kinks within which one must not lie in the argument of another."""


class Proposer:
    """Builds local models and asks them for steps."""

    def __init__(
        self, options: Options, steering: Steering, solver: QPSolver, clock: Clock | None = None, box: Box | None = None
    ) -> None:
        self._options, self._steering, self._solver, self._box = options, steering, solver, box
        self.directing = (clock or Clock()).phase(Phase.DIRECTIONS)

    def propose(self, state: State, weight: float | None = None, *, use_bundle: bool | None = None) -> tuple[ModelLike, Step]:
        """The step at the current point, for the penalty weight of the run or for another.

        Gradients of earlier points are used near kinks only: elsewhere they would hold the step back.
        """
        if weight is None:
            state.remember_hints()
        at = state.current
        kinked = state.near_kink if use_bundle is None else use_bundle
        with self.directing:
            metric, reading = self.metric(state), visible_kinks(state)
            if reading is not None and reading.constraints is not None:
                state.pieces.clear()  # what can be seen need not be remembered
            kept = state.pieces.at(at) if len(state.pieces) else None
            if reading is None:
                cuts = state.bundle.cuts(at) if kinked and len(state.bundle) else own_cut(at)
                model = self.model(at, cuts, kept, metric, state.multipliers)
            else:

                def build(
                    at: Trial, terms: LocalTerms | None, pieces: PieceRows | None, multipliers: Vector | None
                ) -> ModelLike:
                    seen = own_cut(at) if terms is None else VisibleCuts(at, terms.slopes, terms.errors, terms.weights)
                    known = state.multipliers if multipliers is None else multipliers
                    return self.model(at, seen, kept or pieces, metric, known, terms=terms)

                model = StructuredModel(at, reading, build)
            step = self._steering.step(state, model, state.weight if weight is None else weight)
        self._remember(state, step)
        return model, step

    def retry(self, state: State, model: ModelLike, step: Step) -> Step:
        """The step of the same model for a larger penalty weight."""
        with self.directing:
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
        """The model of some cuts, and of terms that can be seen, at a point."""
        if self._box is None:
            return Model(at, cuts, pieces, metric, self._solver, multipliers=multipliers, terms=terms)
        return BoxModel(at, cuts, pieces, metric, self._solver, self._box, multipliers=multipliers, terms=terms)

    def metric(self, state: State) -> InverseHessian:
        """The inverse Hessian of models: the quasi-Newton matrix, regularized where the options ask for it."""
        threshold = self._options.regularization_threshold
        if math.isfinite(threshold) and isinstance(state.hessian, FullMemory):
            return state.hessian.regularized(threshold, lower_large=self._options.regularize_large_eigenvalues)
        return state.hessian

    @staticmethod
    def _remember(state: State, step: Step) -> None:
        """Where the next programs begin."""
        own = len(state.current.c)
        if step.shares is None and len(step.weights) == len(state.bundle) + 1:
            state.bundle.weights = step.weights[1:]
        state.multipliers = step.rows[:own]
        if len(step.rows) == own + len(state.pieces):
            state.pieces.weights = step.rows[own:]


def visible_kinks(state: State) -> Reading | None:
    """The kinks that can be seen from the current point, where the run goes by them and can do so here."""
    reading = state.current.reading if state.structured else None
    if reading is None or reading.hidden or not reading.finite:
        return None
    constraints = reading.constraints
    if constraints is not None:
        kept = constraints.without_inner(constraints.terms.at_kink(NEAR)) if constraints.finite else None
        reading = replace(reading, constraints=kept)
    if not len(reading.terms) and reading.constraints is None:
        return None
    if not reading.is_nested(reading.terms.at_kink(NEAR)):
        return reading
    state.nested_points += 1
    state.structured = state.nested_points <= MOST_NESTED
    return None
