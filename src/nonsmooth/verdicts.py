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
            draft = check(self._evaluate, at, self._tolerances)
            if not draft.certificate.stationary:
                return draft
            hints = draft.carrying
        with self._trust.by_the_functions_themselves():
            if self._evaluator.scales is not None:
                return self._unscaled(at)
            # Of the gradients that the run has gathered none is used: what is claimed must follow from x alone.
            return check(self._evaluate, at, self._tolerances, hints=hints)

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
