"""When compiled functions take over from the user's own, and how they are watched.

A run begins eagerly. When evaluating has taken long enough that building may pay, packages are built in other processes
while the run goes on. They take over once they agree with the functions at points of this run and are faster, are compared
with them again from time to time, and are given up at the first disagreement.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.clock import Phase
from nonsmooth.evaluate.compiled import Changed, Compiled, Packages
from nonsmooth.evaluate.flat import flat_form
from nonsmooth.evaluate.trial import Derivatives, FunctionFailed, Trial

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

LOOK_AFTER = 0.01
"""Seconds of evaluating after which packages of earlier runs are looked for."""
BUILD_AFTER = 1.0
"""Seconds of evaluating after which packages are built, where another core is there to do it."""
BUILD_AFTER_ALONE = 30.0
RECHECK_AFTER, MOST_BETWEEN = 200, 5000
SHIFT = 1e-3
"""Relative size of the steps aside at which gradients are compared: at a kink, two right gradients may differ."""


class Outcome(Enum):
    """What became of compiling the functions."""

    NOT_WANTED = "It was not wanted."
    NOT_WORTH_IT = "The run was too short for it to pay."
    NOT_READY = "The run ended before it was built."
    REFUSED = "The functions cannot be compiled."
    SLOWER = "The compiled functions were not faster."
    USED = "The compiled functions were used."
    CHANGED = "What the functions read has changed, and they were used themselves again."
    DISAGREED = "The compiled functions gave other results than the functions themselves, and were given up."


@dataclass(frozen=True)
class Compilation:
    """What became of compiling the functions in one run."""

    outcome: Outcome
    reason: str = ""
    evaluations: int = 0
    """How many evaluations were compiled ones."""
    checks: int = 0
    """How often they were compared with the functions themselves."""
    build_seconds: float = 0.0
    from_disk: bool = False

    def __str__(self) -> str:
        """One line.

        >>> print(Compilation(Outcome.USED, evaluations=120, checks=2, from_disk=True))
        The compiled functions were used. 120 evaluations, 2 checks, from an earlier run.
        """
        parts = [f"{self.evaluations} evaluations, {self.checks} checks" if self.evaluations else ""]
        parts += ["from an earlier run" if self.from_disk else "", self.reason]
        said = ", ".join(part for part in parts if part)
        return f"{self.outcome.value} {said}.".replace("..", ".") if said else self.outcome.value


class Distrusted(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The compiled functions gave other results than the functions themselves."""


class Tier:
    """Compiled evaluation for one evaluator. `report` tells what became of it."""

    def __init__(self, evaluator: Evaluator, *, always: bool) -> None:
        self._evaluator, self._always = evaluator, always
        self.report = Compilation(Outcome.NOT_WORTH_IT)
        self.on_trusted: Callable[[], None] = lambda: None
        """Called when points that were evaluated so far are known to be right."""
        self._packages: Packages | None = None
        self._compiled: Compiled | None = None
        self._building = self._ended = self._looked = False
        self._recent: deque[tuple[Vector, float, Vector]] = deque(maxlen=4)  # no trial points: those hold graphs
        self._until_check = self._between = RECHECK_AFTER
        clock = evaluator.clock
        self._eager_spans = [clock.phase(phase) for phase in (Phase.VALUES, Phase.GRADIENTS, Phase.JACOBIANS)]
        self._building_phase, self._checking = clock.phase(Phase.BUILD), clock.phase(Phase.CHECKS)
        reason = self._unsuitable()
        if reason:
            self._end(Outcome.REFUSED, reason)

    def _unsuitable(self) -> str:
        variables = self._evaluator.variables
        if self._evaluator.problem.gradients:
            return "they bring their own gradients"
        if variables.module is not None:
            return "the variables are those of a module"
        return "" if variables.device.type == "cpu" else "the variables are not on the CPU"

    def __call__(self, x: Vector) -> Trial | None:
        """The values at x from the compiled functions; None where there are none (yet)."""
        if self._ended:
            return None
        if self._compiled is None:
            if self._recent:  # something to compare with
                self._consider(x)
            if self._compiled is None:
                return None
        try:
            f, values, derivatives = self._compiled(x, self._evaluator.costs)
        except Changed as change:
            self._end(Outcome.CHANGED, str(change))
            return None
        except Exception:
            return None  # the function itself says it better
        if not np.isfinite(f):
            return None  # at the edge of where it is defined, the function itself decides
        self.report = replace(self.report, evaluations=self.report.evaluations + 1)
        self._until_check -= 1
        if self._until_check <= 0:
            self._check_again(x, f, values)
        return self._claim(x, f, values, derivatives)

    def _claim(self, x: Vector, f: float, values: Vector, derivatives: Derivatives | None = None) -> Trial:
        """What the compiled functions say, with bounds and in the solver's units."""
        forms = self._evaluator.forms
        assert forms is not None
        return self._evaluator.judged(x, f, values, forms[1].size, derivatives)

    def saw(self, trial: Trial) -> None:
        """Remember a point that was evaluated by the functions themselves."""
        if not self._ended:
            self._recent.append((trial.x, trial.f, trial.c))

    def forget(self) -> None:
        """Points seen so far were measured in other units."""
        self._recent.clear()

    def confirm(self, x: Vector, f: float, c: Vector) -> Trial:
        """The point by the functions themselves, compared with what is claimed of it; raises `Distrusted`."""
        with self._checking:
            here = self._evaluator.eagerly(x)
            if self.report.evaluations:
                try:
                    self._compare_values(f, c, here.f, here.c)
                except Distrusted as found:
                    self._end(Outcome.DISAGREED, str(found))
                    raise
                self.report = replace(self.report, checks=self.report.checks + 1)
            return here

    def stop(self) -> None:
        """The run has ended: end what is being built."""
        if self._building and not self._ended:
            self.report = Compilation(Outcome.NOT_READY)
        if self._packages is not None:
            self._packages.stop()

    def _end(self, outcome: Outcome, reason: str) -> None:
        self._ended, self._compiled = True, None
        self.report = replace(self.report, outcome=outcome, reason=reason)
        if self._packages is not None:
            self._packages.stop()
        logger.info("compiled functions: %s", self.report)

    def _consider(self, x: Vector) -> None:
        """Look for packages, begin to build them, or take them over, if it is time."""
        if self._building:
            assert self._packages is not None
            if self._packages.done:
                self._take_over(self._packages.finish)
            return
        spent = sum(span.seconds for span in self._eager_spans)
        if not self._looked and (spent >= LOOK_AFTER or self._always):
            self._looked = True
            self._take_over(self._kept)
        if self._compiled is None and not self._ended and (spent >= _patience() or self._always):
            with self._building_phase:
                try:
                    assert self._packages is not None
                    self._packages.begin(x)
                except Exception as error:
                    self._end(Outcome.REFUSED, _line(error))
                    return
                self._building = True
            if self._always:
                with self._building_phase:
                    self._packages.wait()
                self._take_over(self._packages.finish)

    def _kept(self) -> Compiled | None:
        evaluator = self._evaluator
        assert evaluator.forms is not None
        form = flat_form(evaluator.problem, evaluator.variables, evaluator.forms)
        self._packages = Packages(form, evaluator.variables.size)
        return self._packages.kept()

    def _take_over(self, find: Callable[[], Compiled | None]) -> None:
        try:
            with self._building_phase:
                compiled = find()
            if compiled is None:
                return
            with self._checking:
                faster = self._prove(compiled)
        except Exception as error:
            outcome = Outcome.DISAGREED if isinstance(error, Distrusted) else Outcome.REFUSED
            self._end(outcome, _line(error))
            return
        assert self._packages is not None
        packages = self._packages
        self.report = replace(self.report, build_seconds=packages.seconds, from_disk=packages.from_disk)
        if not faster:
            self._end(Outcome.SLOWER, "")
            return
        self._compiled, self._building = compiled, False
        self.report = replace(self.report, outcome=Outcome.USED)
        self._recent.clear()
        self.on_trusted()

    def _prove(self, compiled: Compiled) -> bool:
        """Compare at visited points and beside them; whether it is faster. Raises `Distrusted`."""
        compared: Trial | None = None
        for x, f, c in list(self._recent):
            claimed = self._claim(x, *compiled(x, self._evaluator.costs))
            self._compare_values(claimed.f, claimed.c, f, c)
            other = self._aside(x)
            if other is not None:
                self._compare(self._claim(other.x, *compiled(other.x, self._evaluator.costs)), other)
                self.report = replace(self.report, checks=self.report.checks + 1)
                compared = other
        if compared is None:
            raise Distrusted("no point was found at which gradients could be compared")
        at = compared.x
        ours = _shortest(lambda: self._claim(at, *compiled(at, self._evaluator.costs)).jacobian)
        return ours < 0.9 * _shortest(lambda: self._evaluator.eagerly(at).jacobian)

    def _aside(self, x: Vector) -> Trial | None:
        """The functions themselves at a point beside x where they have gradients."""
        generator = np.random.default_rng(len(x))
        for size in (SHIFT, 0.1 * SHIFT, 1e-3 * SHIFT):
            shift = size * np.maximum(1.0, np.abs(x)) * generator.standard_normal(len(x))
            try:
                trial = self._evaluator.eagerly(x + shift)
                if trial.finite and trial.differentiable:
                    return trial
            except FunctionFailed:
                continue
        return None

    def _check_again(self, x: Vector, f: float, values: Vector) -> None:
        with self._checking:
            assert self._compiled is not None
            try:
                here, claimed = self._evaluator.eagerly(x), self._claim(x, f, values)
                self._compare_values(claimed.f, claimed.c, here.f, here.c)
                other = self._aside(x)
                if other is not None:
                    self._compare(self._claim(other.x, *self._compiled(other.x, self._evaluator.costs)), other)
            except Distrusted as found:
                self._end(Outcome.DISAGREED, str(found))
                raise
        self._between = min(MOST_BETWEEN, 2 * self._between)
        self._until_check = self._between
        self.report = replace(self.report, checks=self.report.checks + 1)
        self.on_trusted()

    def _compare(self, claimed: Trial, trial: Trial) -> None:
        self._compare_values(claimed.f, claimed.c, trial.f, trial.c)
        self._near("the gradient of the objective", claimed.gradient, trial.gradient, 1e3)
        self._near("a gradient of a constraint", claimed.jacobian, trial.jacobian, 1e3)

    def _compare_values(self, f: float, c: Vector, right_f: float, right_c: Vector) -> None:
        self._near("the objective", np.array([f]), np.array([right_f]), 1.0)
        self._near("a constraint", c, right_c, 1.0)

    def _near(self, what: str, ours: NDArray[np.float64], theirs: NDArray[np.float64], factor: float) -> None:
        tolerance = factor * (1e-4 if self._evaluator.variables.single_precision else 1e-9)
        allowed = tolerance * (1.0 + np.abs(theirs).max(initial=0.0))
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=tolerance, atol=allowed, equal_nan=True):
            raise Distrusted(f"{what} was {_most(ours, theirs)} apart")


def _shortest(call: Callable[[], object], times: int = 4) -> float:
    """Seconds of the shortest of some calls."""
    found = []
    for _ in range(times):
        started = perf_counter()
        call()
        found.append(perf_counter() - started)
    return min(found)


def _most(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    return f"{np.abs(ours - theirs).max():.1e}" if ours.shape == theirs.shape else "in shape"


def _patience() -> float:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return BUILD_AFTER if cores > 1 else BUILD_AFTER_ALONE


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
