"""The independent check, asked about the point of a run: in the user's units, and by the functions themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certificate import Check, check
from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.options import Tolerances
from nonsmooth.state import State
from nonsmooth.trust import Trust

Vector = NDArray[np.float64]


class Verdicts:
    """Certificates of a run. `evaluate` and `stop_at_limits` are those of the run, which may end it."""

    def __init__(
        self,
        evaluator: Evaluator,
        tolerances: Tolerances,
        trust: Trust,
        evaluate: Callable[[Vector], Trial],
        stop_at_limits: Callable[[], None],
    ) -> None:
        self._evaluator, self._tolerances, self._trust = evaluator, tolerances, trust
        self._evaluate, self._stop_at_limits = evaluate, stop_at_limits

    def at(self, state: State, *, last: bool) -> Check:
        """What the check says of the current point.

        Compiled functions, where they are in use, find out whether it is worth proving and which gradients matter; what is
        claimed is proven with the functions themselves. Where it is the `last` word, only those are asked.
        """
        hints: tuple[Vector, ...] = ()
        at = self._trust.confirmed(state.current)
        if at is not state.current and self._evaluator.scales is None and not last:
            draft = self._check(state, at)
            if not draft.certificate.stationary:
                return draft
            hints = draft.carrying
        with self._trust.by_the_functions_themselves():
            return self._check(state, at, hints)

    def _check(self, state: State, at: Trial, hints: tuple[Vector, ...] = ()) -> Check:
        if self._evaluator.scales is not None:
            return self._unscaled(at)
        if hints:
            return check(self._evaluate, at, self._tolerances, hints=hints)
        radius = 2.0 * self._tolerances.radius * max(1.0, float(np.abs(at.x).max()))
        known = state.bundle.nearby(at.x, radius)
        found = check(self._evaluate, at, self._tolerances, known=known)
        if found.certificate.stationary and found.certificate.radius > 0 and known:
            return check(self._evaluate, at, self._tolerances)  # what is claimed must follow from x alone
        return found

    def _unscaled(self, at: Trial) -> Check:
        """The check in the user's units, where the solver works with scaled functions."""
        plain = Evaluator(self._evaluator.problem, self._evaluator.variables, self._evaluator.clock)
        plain.costs = self._evaluator.costs

        def evaluate(x: Vector) -> Trial:
            self._stop_at_limits()
            return plain(x)

        found = check(evaluate, evaluate(at.x), self._tolerances)
        better = None if found.better is None else self._evaluate(found.better.x)
        return Check(found.certificate, found.multipliers, better, ())
