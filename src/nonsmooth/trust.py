"""Compiled functions in a run: what is claimed rests on the functions themselves, and what they got wrong is undone."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from nonsmooth.bundle import Bundle, ConstraintCuts, default_capacity
from nonsmooth.ending import Ended
from nonsmooth.evaluate import Distrusted, Evaluator, FunctionFailed, Trial
from nonsmooth.incumbents import Incumbents
from nonsmooth.options import Options
from nonsmooth.starting import initial_hessian
from nonsmooth.state import State
from nonsmooth.valley import Valley

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")


class Trust:
    """Lets a run use compiled functions, and takes it back to the last point that is sure where they were wrong."""

    def __init__(self, evaluator: Evaluator, state: State, options: Options) -> None:
        self._evaluator, self._state, self._options = evaluator, state, options
        self._note()
        if evaluator.tier is not None:
            evaluator.tier.on_trusted = self._note

    def _note(self) -> None:
        """All values so far are sure."""
        self._sure: tuple[Vector, Incumbents] = self._state.current.x, copy.copy(self._state.incumbents)

    def through(self, attempt: Callable[[], Ended]) -> Ended:
        """The end of a run, of which nothing rests on compiled functions alone."""
        tier = self._evaluator.tier
        try:
            while True:
                try:
                    ended = attempt()
                    self._confirm(ended)
                    return ended
                except Distrusted as found:
                    logger.warning("compiled functions are given up, the run goes back to a sure point: %s", found)
                    self._go_back()
        finally:
            if tier is not None:
                tier.stop()
            self._evaluator.tier = None

    def _confirm(self, ended: Ended) -> None:
        """Compare what the run ends with to the functions themselves; raises `Distrusted`."""
        tier = self._evaluator.tier
        if tier is None or not tier.report.evaluations or ended.exception is not None:
            return
        for claimed in (self._state.incumbents.best, self._state.current if ended.at is None else ended.at):
            if claimed is not None:
                tier.confirm(claimed.x, claimed.f, claimed.c)

    def _go_back(self) -> None:
        """Begin anew, with the functions themselves, at the last point whose values are sure."""
        self._evaluator.tier = None
        x, incumbents = self._sure
        state, capacity = self._state, self._options.gradient_samples or default_capacity(len(x))
        vars(state.incumbents).update(vars(incumbents))
        try:
            state.current = self._evaluator(x)
        except FunctionFailed as failure:
            raise failure.original from None
        state.incumbents.see(state.current)
        state.hessian, state.hessian_updates = initial_hessian(state.current, self._options), 0
        state.bundle, state.constraint_cuts = Bundle(len(x), capacity), ConstraintCuts(len(x), capacity)
        state.valley, state.multipliers = Valley(), np.zeros(0)
        state.last_check, state.patience, state.stuck = (-1, np.inf), 0, 0

    @contextmanager
    def by_the_functions_themselves(self, at: Trial) -> Iterator[Trial]:
        """Meanwhile nothing compiled is used: what is claimed then follows from the functions. Gives the point anew."""
        evaluator, tier = self._evaluator, self._evaluator.tier
        if tier is None or not tier.report.evaluations:
            yield at
            return
        here = tier.confirm(at.x, at.f, at.c)
        evaluator.tier = None
        try:
            yield here
        finally:
            evaluator.tier = tier
