"""The independent check, asked about the point of a run: in the user's units, and by the functions themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nonsmooth.certify.certificate import Check, check
from nonsmooth.evaluate import Evaluator, Trial
from nonsmooth.evaluate.scaling import Reference
from nonsmooth.loop.rollback import Trust
from nonsmooth.loop.state import State
from nonsmooth.options import Tolerances

Vector = NDArray[np.float64]


class Verdicts:
    """Certificates of a run. `evaluate` and `stop_at_limits` are those of the run, which may end it."""

    def __init__(
        self,
        evaluator: Evaluator,
        tolerances: Tolerances,
        reference: Reference,
        trust: Trust,
        evaluate: Callable[[Vector], Trial],
        stop_at_limits: Callable[[], None],
    ) -> None:
        self._evaluator, self._tolerances, self._reference, self._trust = evaluator, tolerances, reference, trust
        self._evaluate, self._stop_at_limits = evaluate, stop_at_limits

    def at(self, state: State, *, last: bool) -> Check:
        """What the check says of the current point.

        Compiled functions, where they are in use, find out whether it is worth proving and which gradients matter; what is
        claimed is proven with the functions themselves. Where it is the `last` word, only those are asked.
        """
        hints: tuple[Vector, ...] = ()
        at, natural = self._trust.confirmed(state.current), self._evaluator.scales is self._reference.scales
        if at is not state.current and natural and not last:
            draft = check(self._evaluate, at, self._tolerances, self._reference, self._evaluator.box)
            if not draft.certificate.stationary:
                return draft
            hints = draft.carrying
        with self._trust.by_the_functions_themselves():
            if not natural:
                return self._in_natural_units(at)
            # Of the gradients that the run has gathered none is used: what is claimed must follow from x alone.
            return check(self._evaluate, at, self._tolerances, self._reference, self._evaluator.box, hints=hints)

    def _in_natural_units(self, at: Trial) -> Check:
        """The check where the solver works in other units than those of verdicts."""
        own = self._evaluator
        judge = Evaluator(own.problem, own.variables, own.clock)
        judge.costs, judge.scales = own.costs, self._reference.scales

        def evaluate(x: Vector) -> Trial:
            self._stop_at_limits()
            return judge(x)

        here = evaluate(judge.in_solver_units(own.in_user_units(at.x)))
        judge.skipped = own.skipped
        found = check(evaluate, here, self._tolerances, self._reference, judge.box)
        better = None if found.better is None else self._evaluate(own.in_solver_units(judge.in_user_units(found.better.x)))
        multipliers = own.multipliers_in_solver_units(judge.multipliers_in_user_units(found.multipliers))
        bounds = own.bound_multipliers_in_solver_units(judge.bound_multipliers_in_user_units(found.bound_multipliers))
        return Check(found.certificate, multipliers, better, (), (), bounds)
