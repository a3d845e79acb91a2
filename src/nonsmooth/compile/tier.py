"""When compiled functions take over from the user's own, and how they are watched.

A run begins eagerly. When evaluating has taken long enough that building may pay, packages are built in other processes
while the run goes on, also for further runs of the same functions. They take over once they agree with the functions at
points of the run and are faster, are compared with them again from time to time, and are given up at the first disagreement.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import replace
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nonsmooth.compile import reuse
from nonsmooth.compile.cache_index import noted
from nonsmooth.compile.compiled import Changed, Compiled, Packages
from nonsmooth.compile.cuda_graphs import recorded
from nonsmooth.compile.fallback import OrEager
from nonsmooth.compile.flat import FlatForm, flat_form
from nonsmooth.compile.identity import identity
from nonsmooth.compile.outcome import Compilation, Outcome
from nonsmooth.evaluate.trial import Derivatives, FunctionFailed, Trial
from nonsmooth.report.clock import Phase

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

LOOK_AFTER, LOOK_AFTER_WITH_IMPORT = 0.01, 1.0
"""Seconds of evaluating after which packages of earlier runs are looked for; to import what captures functions takes about
a second, unless the program has done so."""
BUILD_AFTER = 4.0
"""Seconds of evaluating after which packages are built, where another core is there to do it: to begin costs the run itself
about 0.2 s, and one that ends soon after must not have lost more than a few per cent by it."""
BUILD_AFTER_ALONE = 30.0
RECHECK_AFTER, MOST_BETWEEN = 200, 5000
LOOK_EVERY = 8
"""Evaluations from one question whether it is time to the next: asking takes a hundredth of a short evaluation."""
MOST_REMEMBERED = 100
SHIFT = 1e-3
"""Relative size of the steps aside at which gradients are compared: at a kink, two right gradients may differ."""


_spent: dict[Hashable, float] = {}
"""Seconds that earlier runs of this process spent on evaluating the same functions."""
_pending: dict[Hashable, Packages] = {}
"""What is being built for them."""
_refused: dict[Hashable, tuple[Outcome, str]] = {}
"""What cannot be built, or was built and is slower: it is not tried again in this process."""


class CompiledMismatch(Exception):  # noqa: N818 (it reads as a statement of fact)
    """The compiled functions gave other results than the functions themselves."""


class Tier:
    """Compiled evaluation for one evaluator. `report` tells what became of it."""

    def __init__(self, evaluator: Evaluator, *, always: bool) -> None:
        self._evaluator, self._always = evaluator, always
        self._so_far = Compilation(Outcome.NOT_WORTH_IT)
        self.evaluations = 0
        """How many were compiled ones."""
        self._checks = 0
        self.on_trusted: Callable[[], None] = lambda: None
        """Called when points that were evaluated so far are known to be right."""
        self._packages: Packages | None = None
        self._compiled: Compiled | None = None
        self._ended = self._looked = self._asked = False
        self._key = identity(evaluator)
        self._recent: deque[tuple[Vector, float, Vector]] = deque(maxlen=4)  # no trial points: those hold graphs
        self._until_check = self._between = RECHECK_AFTER
        self._until_look = 0
        clock = evaluator.clock
        self._eager_spans = [clock.phase(phase) for phase in (Phase.VALUES, Phase.GRADIENTS, Phase.JACOBIANS)]
        self._building_phase, self._checking = clock.phase(Phase.BUILD), clock.phase(Phase.CHECKS)
        reason = self._unsuitable()
        if reason:
            self._end(Outcome.REFUSED, reason)

    @property
    def report(self) -> Compilation:
        """What became of compiling."""
        return replace(self._so_far, evaluations=self.evaluations, checks=self._checks)

    def _unsuitable(self) -> str:
        variables = self._evaluator.variables
        if self._evaluator.problem.gradients:
            return "they bring their own gradients"
        if variables.module is not None and variables.device.type != "cuda":  # there nothing is traced
            return "the variables are those of a module"
        return (
            "" if variables.device.type in ("cpu", "cuda") else f"the variables are on a device of type {variables.device.type}"
        )

    def __call__(self, x: Vector) -> Trial | None:
        """The values at x from the compiled functions; None where there are none (yet)."""
        if self._ended:
            return None
        if self._compiled is None:
            self._until_look -= 1
            if self._recent and self._until_look <= 0:  # there is something to compare with
                self._until_look = LOOK_EVERY
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
        if not isfinite(f) or not np.isfinite(values).all():
            return None  # at the edge of where it is defined, the function itself decides
        self.evaluations += 1
        self._until_check -= 1
        if self._until_check <= 0:
            self._check_again(x, f, values)
        return self._claim(x, f, values, OrEager(derivatives, self._evaluator, x))

    def _claim(self, x: Vector, f: float, values: Vector, derivatives: Derivatives | None = None) -> Trial:
        """What the compiled functions say, with bounds and in the solver's units."""
        forms = self._evaluator.forms
        assert forms is not None
        return self._evaluator.judged(x, f, values, forms[1].size, derivatives)

    def saw(self, trial: Trial) -> None:
        """Remember a point that was evaluated by the functions themselves."""
        if not self._ended:
            self._recent.append((self._evaluator.in_user_units(trial.x), trial.f, trial.c))

    def forget(self) -> None:
        """Points seen so far were measured in other units."""
        self._recent.clear()

    def confirm(self, x: Vector, f: float, c: Vector) -> Trial:
        """The point by the functions themselves, compared with what is claimed of it; raises `CompiledMismatch`."""
        with self._checking:
            here = self._evaluator.eagerly(self._evaluator.in_user_units(x))
            if self.evaluations:
                try:
                    self._compare_values(f, c, here.f, here.c)
                except CompiledMismatch as found:
                    self._end(Outcome.DISAGREED, str(found))
                    raise
                self._checks += 1
            return here

    def stop(self) -> None:
        """The run has ended. What is being built goes on: another run may follow."""
        if self._key in _pending and not self._ended and self._compiled is None:
            self._so_far, self.evaluations, self._checks = Compilation(Outcome.NOT_READY), 0, 0
        if self._compiled is not None:
            reuse.remember(self._evaluator, self._compiled)
        else:
            _spent[self._key] = self._seconds()
            if len(_spent) > MOST_REMEMBERED:
                del _spent[next(iter(_spent))]

    def _seconds(self) -> float:
        """Time that was spent on evaluating these functions, also by earlier runs of this process."""
        return sum(span.seconds for span in self._eager_spans) + _spent.get(self._key, 0.0)

    def _end(self, outcome: Outcome, reason: str) -> None:
        self._ended, self._compiled = True, None
        self._so_far = replace(self._so_far, outcome=outcome, reason=reason)
        logger.info("compiled functions: %s", self.report)

    def _give_up(self, outcome: Outcome, reason: str) -> None:
        """End it, for runs that follow too where they are of exactly the same functions."""
        if self._packages is not None:
            _refused[self._packages.name] = outcome, reason
            if len(_refused) > MOST_REMEMBERED:
                del _refused[next(iter(_refused))]
        self._end(outcome, reason)

    def _consider(self, x: Vector) -> None:
        """Look for packages, begin to build them, or take them over, if it is time."""
        if not self._looked and not self._asked:
            self._asked = True
            earlier = reuse.find(self._evaluator)
            if earlier is not None:
                self._looked = True
                self._take_over(lambda: earlier, proven=True)
                return
        pending = _pending.get(self._key)
        if pending is not None:
            if pending.done:
                self._collect()
        elif not self._looked:
            if self._always or self._seconds() >= self._time_to_look():
                self._look()
        elif self._always or self._seconds() >= _patience():
            self._build(x)

    def _time_to_look(self) -> float:
        return LOOK_AFTER if "torch._dynamo" in sys.modules else LOOK_AFTER_WITH_IMPORT

    def _look(self) -> None:
        self._looked = True
        variables, forms = self._evaluator.variables, self._evaluator.forms
        assert forms is not None
        # Where nothing is kept there is nothing to find, and what looks for it takes a while to import.
        if (
            self._always
            or variables.device.type == "cuda"
            or noted(variables.size, forms[0].size + forms[1].size, forms[1].size)
        ):
            self._take_over(self._kept)

    def _build(self, x: Vector) -> None:
        with self._building_phase:
            try:
                if self._packages is None:
                    self._packages = self._new_packages(x)
                if self._packages.name in _refused and not self._always:
                    self._end(*_refused[self._packages.name])
                    return
                self._packages.begin(idly=not self._always and _cores() > 1)
            except Exception as error:
                self._give_up(Outcome.REFUSED, _line(error))
                return
            _pending[self._key] = self._packages
            if not self._always:
                return
            self._packages.wait()
        self._collect()

    def _collect(self) -> None:
        """Take over what was built, for this run or an earlier one of the same functions."""
        packages = _pending.pop(self._key, None)
        if packages is None:
            return  # another thread was first
        if packages is self._packages:
            self._take_over(packages.finish)
        else:
            try:
                with self._building_phase:
                    packages.finish()  # which keeps them on disk
            except Exception as error:
                self._give_up(Outcome.REFUSED, _line(error))
                return
            self._look()

    def _form(self) -> FlatForm:
        evaluator = self._evaluator
        assert evaluator.forms is not None
        return flat_form(evaluator.problem, evaluator.variables, evaluator.forms)

    def _new_packages(self, at: Vector) -> Packages:
        return Packages(self._form(), self._evaluator.variables.size, at)

    def _kept(self) -> Compiled | None:
        variables = self._evaluator.variables
        if variables.device.type == "cuda":
            return recorded(self._form(), self._recent[-1][0], variables.device)
        self._packages = self._new_packages(self._recent[-1][0])
        if _refused and not self._always and self._packages.name in _refused:
            self._end(*_refused[self._packages.name])
            return None
        return self._packages.kept()

    def _take_over(self, find: Callable[[], Compiled | None], *, proven: bool = False) -> None:
        try:
            with self._building_phase:
                compiled = find()
            if compiled is None:
                return
            with self._checking:
                faster = self._prove(compiled, proven=proven)
        except Exception as error:
            if isinstance(error, Changed) and proven:
                self._looked = False  # it belongs to what the functions were then
                return
            if self._packages is not None and self._packages.from_disk:
                self._packages.drop()  # whatever is wrong with it, it is made anew
                return
            outcome = Outcome.DISAGREED if isinstance(error, CompiledMismatch) else Outcome.REFUSED
            self._give_up(outcome, _line(error))
            return
        packages = self._packages
        if packages is not None:
            self._so_far = replace(self._so_far, build_seconds=packages.seconds, from_disk=packages.from_disk)
        if not faster:
            self._give_up(Outcome.SLOWER, "")
            return
        self._compiled = compiled
        self._so_far = replace(self._so_far, outcome=Outcome.USED)
        self._recent.clear()
        self.on_trusted()

    def _prove(self, compiled: Compiled, *, proven: bool = False) -> bool:
        """Compare at visited points and beside them; whether it is faster, unless that is known. Raises `CompiledMismatch`."""
        eager, ours = [], []
        for x, f, c in list(self._recent):
            claimed = self._claim(x, *compiled(x, self._evaluator.costs))
            self._compare_values(claimed.f, claimed.c, f, c)
            other, seconds = self._aside(x)
            if other is not None:
                started = perf_counter()
                beside = self._evaluator.in_user_units(other.x)
                claimed = self._claim(beside, *compiled(beside, self._evaluator.costs))
                _ = claimed.differentiable
                ours.append(perf_counter() - started)
                eager.append(seconds)
                self._compare(claimed, other)
                self._checks += 1
        if not eager:
            raise CompiledMismatch("no point was found at which gradients could be compared")
        return proven or min(ours) < 0.9 * min(eager)

    def _aside(self, x: Vector) -> tuple[Trial | None, float]:
        """The functions themselves at a point beside x where they have gradients, and how long they took."""
        generator = np.random.default_rng(len(x))
        for size in (SHIFT, 0.1 * SHIFT, 1e-3 * SHIFT):
            shift = size * np.maximum(1.0, np.abs(x)) * generator.standard_normal(len(x))
            started = perf_counter()
            try:
                trial = self._evaluator.eagerly(x + shift)
                if trial.finite and trial.differentiable:
                    return trial, perf_counter() - started
            except FunctionFailed:
                continue
        return None, 0.0

    def _check_again(self, x: Vector, f: float, values: Vector) -> None:
        with self._checking:
            assert self._compiled is not None
            try:
                here, claimed = self._evaluator.eagerly(x), self._claim(x, f, values)
                self._compare_values(claimed.f, claimed.c, here.f, here.c)
                other, _ = self._aside(x)
                if other is not None:
                    beside = self._evaluator.in_user_units(other.x)
                    self._compare(self._claim(beside, *self._compiled(beside, self._evaluator.costs)), other)
            except Changed as change:
                self._end(Outcome.CHANGED, str(change))
                return
            except CompiledMismatch as found:
                self._end(Outcome.DISAGREED, str(found))
                raise
        self._between = min(MOST_BETWEEN, 2 * self._between)
        self._until_check = self._between
        self._checks += 1
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
        if ours.shape != theirs.shape:
            raise CompiledMismatch(f"{what} has another shape")
        finite = np.isfinite(theirs)
        same = np.where(finite, np.isfinite(ours), (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        difference = np.abs(np.where(finite & same, ours - theirs, 0.0))
        # A gradient is measured by its longest entry, for its sums cancel; a value by itself.
        size = np.abs(np.where(finite, theirs, 0.0))
        scale = size.max(axis=-1, keepdims=True, initial=0.0) if factor > 1.0 else size
        if not same.all() or (difference > tolerance * (1.0 + scale)).any():
            raise CompiledMismatch(f"{what} was {difference.max(initial=0.0):.1e} apart")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _patience() -> float:
    return BUILD_AFTER if _cores() > 1 else BUILD_AFTER_ALONE


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    if lines and type(error).__name__ == "RefusalError":
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
