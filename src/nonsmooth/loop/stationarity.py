"""The independent check, asked about the point of a run: in natural units, and by the functions themselves."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.certificate import Check, check
from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.loop.limits import LimitedEvaluator
from nonsmooth.loop.rollback import CompiledGuard
from nonsmooth.loop.state import State
from nonsmooth.options import Tolerances
from nonsmooth.report.clock import Phase

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")


class StationarityCheck:
    """Certificates of a run; `last` is the last one."""

    def __init__(
        self,
        evaluator: Evaluator,
        evaluate: LimitedEvaluator,
        tolerances: Tolerances,
        reference: Reference,
        guard: CompiledGuard,
    ) -> None:
        self._evaluator, self._evaluate, self._tolerances = evaluator, evaluate, tolerances
        self._reference, self._guard = reference, guard
        self._testing = evaluator.clock.phase(Phase.STATIONARITY)
        self.last: Check | None = None

    def check(self, state: State, *, final: bool = False) -> Check:
        """What the check says of the current point; a `final` word is that of the functions themselves alone."""
        with self._testing:
            found = self._check(state, final=final)
            self.last = replace(found, better=None, gathered=(), carrying=())  # its points are not needed any more
            logger.debug("iteration %d: %s", state.iteration, found.certificate)
            return found

    def _check(self, state: State, *, final: bool) -> Check:
        """Compiled functions, where they are in use, find out whether it is worth proving and which gradients matter; what is
        claimed is proven with the functions themselves.
        """
        box, reference = self._evaluator.box, self._reference
        at, natural = self._guard.confirmed(state.current), self._evaluator.scales is reference.scales
        hints: tuple[Vector, ...] = ()
        if at is not state.current and natural and not final:
            draft = check(self._evaluate, at, self._tolerances, reference, box)
            if not draft.certificate.stationary:
                return draft
            hints = draft.carrying
        with self._guard.functions_themselves():
            if not natural:
                return self._in_natural_units(at)
            # Of the gradients that the run has gathered none is used: what is claimed must follow from x alone.
            return check(self._evaluate, at, self._tolerances, reference, box, hints=hints)

    def _in_natural_units(self, at: Trial) -> Check:
        """The check where the solver works in other units than those of verdicts."""
        own = self._evaluator
        judge = Evaluator(own.problem, own.variables, own.clock, user_errors=own.user_errors)
        judge.costs, judge.scales = own.costs, self._reference.scales
        judge.structured, judge.noting = own.structured, own.noting
        evaluate = self._evaluate.through(judge)
        here = evaluate(judge.in_solver_units(own.in_user_units(at.x)))
        judge.skipped = own.skipped
        found = check(evaluate, here, self._tolerances, self._reference, judge.box)
        better = None if found.better is None else self._evaluate(own.in_solver_units(judge.in_user_units(found.better.x)))
        multipliers = own.multipliers_in_solver_units(judge.multipliers_in_user_units(found.multipliers))
        bounds = own.bound_multipliers_in_solver_units(judge.bound_multipliers_in_user_units(found.bound_multipliers))
        return Check(found.certificate, multipliers, better, (), (), bounds)
