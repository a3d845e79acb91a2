"""Safeguards for compiled functions: claims are verified with the original functions, and mismatches are rolled back."""

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
"""Statuses that depend on more than the last point: the run must reach them with the original functions."""


class CompiledGuard:
    """Lets a run use compiled functions, and rolls it back to the last verified point if they were wrong.

    `begin` creates a fresh state at a point.
    """

    def __init__(self, evaluator: Evaluator, state: State, begin: Callable[[Trial], State]) -> None:
        self._evaluator, self._state, self._begin = evaluator, state, begin
        self._start = state.current.x
        self._store_verified_points()
        self._tier = evaluator.tier
        if self._tier is not None:
            self._tier.on_verified = self._store_verified_points

    def _store_verified_points(self) -> None:
        """All points so far are verified: store the ones to roll back to."""
        incumbents = self._state.incumbents
        candidates = [self._state.current, incumbents.best, incumbents.most_feasible]
        self._verified_points = [self._start, *(item.x for item in candidates if item is not None)]

    def accepts(self, end: EndOfRun) -> bool:
        """Whether the end of a run is valid; if not, the run can continue from the state.

        Raises `CompiledMismatch` if the original functions contradict the end of the run.
        """
        tier = self._evaluator.tier
        if tier is None or not tier.evaluations:
            return True
        self._confirm(end, tier)
        if end.status not in _CLAIMS:
            return True
        self._evaluator.tier = None
        self._state.current = self._evaluator(self._state.current.x)
        return False

    def close(self) -> None:
        """Stop using and building compiled functions."""
        if self._tier is not None:
            self._tier.stop()
        self._evaluator.tier = None

    def _confirm(self, end: EndOfRun, tier: Tier) -> None:
        """Compare the final points of the run with the original functions; raises `CompiledMismatch`."""
        incumbents, last = self._state.incumbents, self._state.current if end.at is None else end.at
        confirmed_points: set[int] = set()
        for point in (incumbents.best, incumbents.most_feasible, last):
            if point is not None and id(point) not in confirmed_points:
                confirmed_points.add(id(point))
                tier.confirm(point.x, point.f, point.c)

    def roll_back(self, mismatch: CompiledMismatch) -> None:
        """Restart with the original functions at the last verified point that is finite; the start always is."""
        logger.warning("dropping the compiled functions and returning to a verified point: %s", mismatch)
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

    def confirm(self, at: Trial) -> Trial:
        """The point as evaluated by the original functions; raises `CompiledMismatch` if the compiled ones differ."""
        tier = self._evaluator.tier
        return at if tier is None or not tier.evaluations else tier.confirm(at.x, at.f, at.c)

    @contextmanager
    def original_functions(self) -> Iterator[None]:
        """Use only the original functions within the context, so that verdicts follow from these alone."""
        evaluator, tier = self._evaluator, self._evaluator.tier
        evaluator.tier = None
        try:
            yield
        finally:
            evaluator.tier = tier
