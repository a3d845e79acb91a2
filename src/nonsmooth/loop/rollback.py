"""Compiled functions in a run: what is claimed rests on the functions themselves, and what they got wrong is undone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from nonsmooth.compile import CompiledMismatch, Tier
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.kinks.bundle import Bundle, ConstraintCuts, default_capacity
from nonsmooth.loop.ending import Ended
from nonsmooth.loop.start import initial_hessian
from nonsmooth.loop.state import State
from nonsmooth.options import Options
from nonsmooth.result import Status
from nonsmooth.step.correction import Curved
from nonsmooth.step.valley import Valley

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

_BY_THE_USER = (Status.USER_STOP,)
_TO_BE_SEEN_AGAIN = (
    Status.INFEASIBLE,
    Status.SEARCH_FAILED_INFEASIBLE,
    Status.SEARCH_FAILED_FEASIBLE,
    Status.UNBOUNDED,
    Status.TARGET_REACHED,
)


class Trust:
    """Lets a run use compiled functions, and takes it back to the last point that is sure where they were wrong."""

    def __init__(self, evaluator: Evaluator, state: State, options: Options) -> None:
        self._evaluator, self._state, self._options = evaluator, state, options
        self._start = state.current.x
        self._note()
        if evaluator.tier is not None:
            evaluator.tier.on_trusted = self._note

    def _note(self) -> None:
        """Points so far are believed: where to go back to."""
        incumbents = self._state.incumbents
        known = [self._state.current, incumbents.best, incumbents.most_feasible]
        self._sure = [self._start, *(item.x for item in known if item is not None)]

    def through(self, attempt: Callable[[], Ended]) -> Ended:
        """The end of a run, of which nothing rests on compiled functions alone."""
        tier = self._evaluator.tier
        try:
            while True:
                try:
                    ended = attempt()
                except CompiledMismatch as found:
                    self._go_back(found)
                    continue
                tier_in_use = self._evaluator.tier
                if tier_in_use is None or not tier_in_use.evaluations:
                    return ended
                try:
                    self._confirm(ended, tier_in_use)
                except CompiledMismatch as found:
                    self._go_back(found)
                    if ended.status in _BY_THE_USER or ended.exception is not None:
                        return Ended(ended.status, exception=ended.exception)
                    continue
                if ended.status not in _TO_BE_SEEN_AGAIN:
                    return ended
                # Such a verdict rests on more than the last point: the functions themselves must come to it.
                self._evaluator.tier = None
                self._state.current = self._evaluator(self._state.current.x)
        except FunctionFailed as failure:
            return Ended(Status.FUNCTION_ERROR, exception=failure.original)
        except KeyboardInterrupt:
            return Ended(Status.USER_STOP)
        finally:
            if tier is not None:
                tier.stop()
            self._evaluator.tier = None

    def _confirm(self, ended: Ended, tier: Tier) -> None:
        """Compare what the run ends with to the functions themselves; raises `CompiledMismatch`."""
        incumbents, last = self._state.incumbents, self._state.current if ended.at is None else ended.at
        seen: set[int] = set()
        for claimed in (incumbents.best, incumbents.most_feasible, last):
            if claimed is not None and id(claimed) not in seen:
                seen.add(id(claimed))
                tier.confirm(claimed.x, claimed.f, claimed.c)

    def _go_back(self, found: CompiledMismatch) -> None:
        """Begin anew, with the functions themselves, at the last point that is good by them; the start is, in any case."""
        logger.warning("compiled functions are given up, the run goes back to a sure point: %s", found)
        self._evaluator.tier = None
        state = self._state
        state.incumbents.forget()
        for x in self._sure:
            try:
                trial = self._evaluator(x)
                good = trial.finite and trial.differentiable
            except FunctionFailed:
                if x is self._start:
                    raise
                continue
            if good:
                state.incumbents.see(trial)
                if x is self._start or x is self._sure[1]:
                    state.current = trial
        size, capacity = len(self._start), self._options.gradient_samples or default_capacity(len(self._start))
        device = self._evaluator.variables.device
        state.hessian, state.hessian_updates = initial_hessian(state.current, self._options, device), 0
        state.bundle, state.constraint_cuts = Bundle(size, capacity), ConstraintCuts(size, capacity)
        state.valley, state.multipliers = Valley(), np.zeros(0)
        state.last_check, state.patience, state.stuck = (-1, np.inf), 0, 0
        state.weight, state.loose, state.relaxations, state.recoveries = 1.0 / self._options.penalty_parameter, 0, 0, 0
        state.kinked, state.blind, state.curved = False, (0, np.inf), Curved()

    def confirmed(self, at: Trial) -> Trial:
        """The point by the functions themselves, where compiled ones are used; raises `CompiledMismatch` where they differ."""
        tier = self._evaluator.tier
        return at if tier is None or not tier.evaluations else tier.confirm(at.x, at.f, at.c)

    @contextmanager
    def by_the_functions_themselves(self) -> Iterator[None]:
        """Meanwhile nothing compiled is used: what is claimed then follows from the functions."""
        evaluator, tier = self._evaluator, self._evaluator.tier
        evaluator.tier = None
        try:
            yield
        finally:
            evaluator.tier = tier
