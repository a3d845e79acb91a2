"""The independent check, asked about the point of a run: in natural units, and by the functions themselves."""

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
        self._first, self._guard = reference, guard
        self._second: Reference | None = None
        """Units that an answer has shown, where they are far from those that the start had shown."""
        self.reference = reference
        """That of the last verdict."""
        self._testing = evaluator.clock.phase(Phase.STATIONARITY)
        self.last: Check | None = None

    def check(self, state: State, *, final: bool = False) -> Check:
        """What the check says of the current point; a `final` word is that of the functions themselves alone."""
        with self._testing:
            self.reference = self._first
            found = self._check(state, final=final)
            self.last = replace(found, better=None, gathered=(), support=())  # its points are not needed any more
            logger.debug("iteration %d: %s", state.iteration, found.certificate)
            return found

    def _check(self, state: State, *, final: bool) -> Check:
        """Compiled functions, where they are in use, find out whether it is worth proving and which gradients matter; what is
        claimed is proven with the functions themselves.
        """
        at, first = self._guard.confirmed(state.current), _Judge(self._evaluator, self._evaluate, self._tolerances, self._first)
        hints: tuple[Vector, ...] = ()
        if at is not state.current and first.natural and not final:
            draft = first.check(at)
            if not draft.certificate.stationary:
                return draft
            hints = draft.support
        with self._guard.functions_themselves():
            # Of the gradients that the run has gathered none is used: what is claimed must follow from x alone.
            found = first.check(at, hints)
            return self._in_second_units(first, found, at) if found.certificate.stationary else first.told(found)

    def _in_second_units(self, first: _Judge, found: Check, at: Trial) -> Check:
        """What the check says that `found` a point stationary where an answer has shown that the units are wrong."""
        self._second = self._second or first.refitted(found)
        if self._second is None:
            return first.told(found)
        second = _Judge(self._evaluator, self._evaluate, self._tolerances, self._second)
        again = second.check(at)
        if not again.certificate.stationary and again.better is None:
            return first.told(found)  # nothing speaks against it
        self.reference = self._second
        return second.told(again)


class _Judge:
    """The check in some units, which need not be those in which the solver works."""

    def __init__(self, own: Evaluator, evaluate: LimitedEvaluator, tolerances: Tolerances, reference: Reference) -> None:
        self._own, self._evaluate, self._tolerances, self._reference = own, evaluate, tolerances, reference
        self.natural = own.scales is reference.scales
        """Whether the solver works in them."""
        if self.natural:
            self._evaluator: Evaluator = own
            self._limited: Callable[[Vector], Trial] = evaluate
            return
        self._evaluator = other = Evaluator(own.problem, own.variables, own.clock, user_errors=own.user_errors)
        other.costs, other.scales, other.structured, other.watching = own.costs, reference.scales, own.structured, own.watching
        other.constraints_structured = own.constraints_structured
        self._limited = evaluate.through(other)

    def _seen(self, at: Trial) -> Trial:
        """The point in these units."""
        if self.natural:
            return at
        here = self._limited(self._evaluator.in_solver_units(self._own.in_user_units(at.x)))
        self._evaluator.skipped = self._own.skipped
        return here

    def check(self, at: Trial, hints: tuple[Vector, ...] = ()) -> Check:
        """What the check says, in these units."""
        self._here = self._seen(at)
        return check(self._limited, self._here, self._tolerances, self._reference, self._evaluator.box, hints=hints)

    def told(self, found: Check) -> Check:
        """The same in the units of the solver."""
        if self.natural:
            return found
        judge, own = self._evaluator, self._own
        better = None if found.better is None else self._evaluate(own.in_solver_units(judge.in_user_units(found.better.x)))
        multipliers = own.multipliers_in_solver_units(judge.multipliers_in_user_units(found.multipliers))
        bounds = own.bound_multipliers_in_solver_units(judge.bound_multipliers_in_user_units(found.bound_multipliers))
        return Check(found.certificate, multipliers, better, (), (), bounds)

    def refitted(self, found: Check) -> Reference | None:
        """Other units, where an answer shows that those chosen at the start are wrong; a loosened tolerance is one in those."""
        here = self._here
        if found.steepness is None or self._tolerances.allowance > 0:
            return None
        return self._reference.refitted(found.steepness, here.f, here.jacobian)
