"""Runs the independent check at the current point of a run, in natural units and with the original functions."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
    """Runs the check during a run; `last` is its latest result."""

    def __init__(
        self,
        evaluator: Evaluator,
        evaluate: LimitedEvaluator,
        tolerances: Tolerances,
        reference: Reference,
        guard: CompiledGuard,
    ) -> None:
        self._evaluator, self._evaluate, self._tolerances = evaluator, evaluate, tolerances
        self._first, self._guard = reference, guard
        self._second: Reference | None = None
        """The units derived from an answer, if they are far from those derived from the start."""
        self.reference = reference
        """The reference of the last check."""
        self._stationarity_phase = evaluator.clock.phase(Phase.STATIONARITY)
        self.last: Check | None = None

    def check(self, state: State, *, final: bool = False) -> Check:
        """The result of the check at the current point; a `final` check uses the original functions alone."""
        with self._stationarity_phase:
            self.reference = self._first
            verdict = self._check(state, final=final)
            self.last = replace(verdict, better=None, gathered_trials=(), support=())  # its points are no longer needed
            logger.debug("iteration %d: %s", state.iteration, verdict.certificate)
            return verdict

    def _check(self, state: State, *, final: bool) -> Check:
        """Compiled functions, if in use, run a draft check to see whether a proof is likely and which gradients matter; the
        proof itself uses the original functions.
        """
        at = self._guard.confirm(state.current)
        first = _CheckInUnits(self._evaluator, self._evaluate, self._tolerances, self._first)
        hints: tuple[Vector, ...] = ()
        if at is not state.current and first.natural and not final:
            draft = first.check(at)
            if not draft.certificate.stationary:
                return draft
            hints = draft.support
        with self._guard.original_functions():
            # No gradient that the run has gathered is used: the proof must follow from x alone.
            verdict = first.check(at, hints)
            stationary = verdict.certificate.stationary
            return self._in_second_units(first, verdict, at) if stationary else first.in_solver_units(verdict)

    def _in_second_units(self, first: _CheckInUnits, verdict: Check, at: Trial) -> Check:
        """Repeat a check that found a point stationary in other units, if the answer shows that the first ones are wrong."""
        self._second = self._second or first.refit(verdict)
        if self._second is None:
            return first.in_solver_units(verdict)
        second = _CheckInUnits(self._evaluator, self._evaluate, self._tolerances, self._second)
        second_verdict = second.check(at)
        if not second_verdict.certificate.stationary and second_verdict.better is None:
            return first.in_solver_units(verdict)  # the second check does not refute the first
        self.reference = self._second
        return second.in_solver_units(second_verdict)


class _CheckInUnits:
    """The check in given units, which may differ from those of the solver."""

    def __init__(self, own: Evaluator, evaluate: LimitedEvaluator, tolerances: Tolerances, reference: Reference) -> None:
        self._own, self._evaluate, self._tolerances, self._reference = own, evaluate, tolerances, reference
        self.natural = own.scales is reference.scales
        """Whether these are the solver's units."""
        if self.natural:
            self._evaluator: Evaluator = own
            self._evaluate_within_limits: Callable[[Vector], Trial] = evaluate
            return
        self._evaluator = other = Evaluator(own.problem, own.variables, own.clock, user_errors=own.user_errors)
        other.costs, other.scales, other.structured, other.watching = own.costs, reference.scales, own.structured, own.watching
        other.constraints_structured = own.constraints_structured
        self._evaluate_within_limits = evaluate.through(other)

    def _convert(self, at: Trial) -> Trial:
        """The point in these units."""
        if self.natural:
            return at
        trial = self._evaluate_within_limits(self._evaluator.in_solver_units(self._own.in_user_units(at.x)))
        self._evaluator.skipped_errors = self._own.skipped_errors
        return trial

    def check(self, at: Trial, hints: tuple[Vector, ...] = ()) -> Check:
        """The result of the check, in these units."""
        self._at = self._convert(at)
        return check(
            self._evaluate_within_limits, self._at, self._tolerances, self._reference, self._evaluator.box, hints=hints
        )

    def in_solver_units(self, verdict: Check) -> Check:
        """The same result in the units of the solver."""
        if self.natural:
            return verdict
        other, own = self._evaluator, self._own
        better = None if verdict.better is None else self._evaluate(own.in_solver_units(other.in_user_units(verdict.better.x)))
        multipliers = own.multipliers_in_solver_units(other.multipliers_in_user_units(verdict.multipliers))
        bounds = own.bound_multipliers_in_solver_units(other.bound_multipliers_in_user_units(verdict.bound_multipliers))
        return Check(verdict.certificate, multipliers, better, (), (), bounds)

    def refit(self, verdict: Check) -> Reference | None:
        """Other units, if the answer shows that those from the start are wrong. A tolerance that the user has loosened refers
        to the units from the start, which then stay."""
        at = self._at
        if verdict.steepness is None or self._tolerances.allowance > 0:
            return None
        return self._reference.refit(verdict.steepness, at.f, at.jacobian)
