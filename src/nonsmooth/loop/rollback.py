"""Compiled functions in a run: what is claimed rests on the functions themselves, and what they got wrong is rolled back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from nonsmooth.compile import CompiledMismatch, Tier
from nonsmooth.evaluate import Evaluator, FunctionFailed, Trial
from nonsmooth.loop.end_of_run import EndOfRun
from nonsmooth.loop.state import State
from nonsmooth.result import Status

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

_CLAIMS = (
    Status.INFEASIBLE,
    Status.SEARCH_FAILED_INFEASIBLE,
    Status.SEARCH_FAILED_FEASIBLE,
    Status.UNBOUNDED,
    Status.TARGET_REACHED,
)
"""What rests on more than the last point: the functions themselves must come to it."""


class CompiledGuard:
    """Lets a run use compiled functions, and takes it back to the last point that is sure where they were wrong.

    `begin` makes a fresh state at a point.
    """

    def __init__(self, evaluator: Evaluator, state: State, begin: Callable[[Trial], State]) -> None:
        self._evaluator, self._state, self._begin = evaluator, state, begin
        self._start = state.current.x
        self._note()
        self._tier = evaluator.tier
        if self._tier is not None:
            self._tier.on_verified = self._note

    def _note(self) -> None:
        """Points so far are believed: where to go back to."""
        incumbents = self._state.incumbents
        known = [self._state.current, incumbents.best, incumbents.most_feasible]
        self._verified_points = [self._start, *(item.x for item in known if item is not None)]

    def accepts(self, ended: EndOfRun) -> bool:
        """Whether the end of a run stands; where it does not, the state is one from which the run goes on.

        Raises `CompiledMismatch` where the functions themselves deny what the run ends with.
        """
        tier = self._evaluator.tier
        if tier is None or not tier.evaluations:
            return True
        self._confirm(ended, tier)
        if ended.status not in _CLAIMS:
            return True
        self._evaluator.tier = None
        self._state.current = self._evaluator(self._state.current.x)
        return False

    def close(self) -> None:
        """No compiled functions are used, or built, from now on."""
        if self._tier is not None:
            self._tier.stop()
        self._evaluator.tier = None

    def _confirm(self, ended: EndOfRun, tier: Tier) -> None:
        """Compare what the run ends with to the functions themselves; raises `CompiledMismatch`."""
        incumbents, last = self._state.incumbents, self._state.current if ended.at is None else ended.at
        seen: set[int] = set()
        for claimed in (incumbents.best, incumbents.most_feasible, last):
            if claimed is not None and id(claimed) not in seen:
                seen.add(id(claimed))
                tier.confirm(claimed.x, claimed.f, claimed.c)

    def roll_back(self, mismatch: CompiledMismatch) -> None:
        """Begin anew, with the functions themselves, at the last point that is good by them; the start is, in any case."""
        logger.warning("compiled functions are given up, the run goes back to a sure point: %s", mismatch)
        self._evaluator.tier = None
        state = self._state
        state.incumbents.clear()
        current = state.current
        for x in self._verified_points:
            try:
                trial = self._evaluator(x)
                good = trial.finite and trial.differentiable
            except FunctionFailed:
                if x is self._start:
                    raise
                continue
            if good:
                state.incumbents.consider(trial)
                if x is self._start or x is self._verified_points[1]:
                    current = trial
        state.restart(self._begin(current))

    def confirmed(self, at: Trial) -> Trial:
        """The point by the functions themselves, where compiled ones are used; raises `CompiledMismatch` where they differ."""
        tier = self._evaluator.tier
        return at if tier is None or not tier.evaluations else tier.confirm(at.x, at.f, at.c)

    @contextmanager
    def functions_themselves(self) -> Iterator[None]:
        """Meanwhile nothing compiled is used: what is claimed then follows from the functions."""
        evaluator, tier = self._evaluator, self._evaluator.tier
        evaluator.tier = None
        try:
            yield
        finally:
            evaluator.tier = tier
