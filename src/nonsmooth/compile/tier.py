"""When compiled functions replace the user's functions, and how they are checked.

A run starts eagerly. Once evaluations have taken long enough that a build may pay back, packages are built in other processes
while the run continues, also for further runs of the same functions. They replace the original functions if they agree at
points of the run and are faster. They are compared again periodically, and dropped at the first disagreement.
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
from nonsmooth.compile.cache_index import has_entry
from nonsmooth.compile.compiled import Compiled, GuardFailed, Packages
from nonsmooth.compile.cuda_graphs import record_cuda_graphs
from nonsmooth.compile.eager_fallback import EagerFallback
from nonsmooth.compile.flat import FlatForm, flat_form
from nonsmooth.compile.identity import identity
from nonsmooth.compile.outcome import Compilation, CompileOutcome
from nonsmooth.evaluate.trial import Derivatives, FunctionFailed, Trial
from nonsmooth.report.clock import Phase

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator

Vector = NDArray[np.float64]

logger = logging.getLogger("nonsmooth")

LOOKUP_AFTER_SECONDS, LOOKUP_AFTER_SECONDS_WITH_IMPORT = 0.01, 1.0
"""Evaluation time after which to look for packages of earlier runs; importing the code that captures functions takes about a
second, unless the program has already imported it."""
BUILD_AFTER_SECONDS = 4.0
"""Evaluation time after which packages are built if another core is available: starting a build costs the run itself about
0.2 s, which must not exceed a few percent of a run that ends soon afterwards."""
BUILD_AFTER_SECONDS_ON_ONE_CORE = 30.0
EVALUATIONS_BEFORE_RECHECK, MAX_EVALUATIONS_BETWEEN_CHECKS = 200, 5000
EVALUATIONS_BETWEEN_LOOKUPS = 8
"""How often to test whether it is time to look or build: the test takes a hundredth of a short evaluation."""
MAX_REMEMBERED_FUNCTIONS = 100
MAX_TIME_RATIO = 0.9
"""Largest ratio of compiled to eager time with which a package counts as faster."""
GRADIENT_TOLERANCE_FACTOR = 1e3
"""Ratio of the tolerance for gradients to that for values."""
RELATIVE_SHIFT = 1e-3
"""Relative distance to the points at which gradients are compared: at a kink, two correct gradients may differ."""


_spent: dict[Hashable, float] = {}
"""Seconds that earlier runs of this process spent on evaluating the same functions."""
_pending: dict[Hashable, Packages] = {}
"""Packages being built for these functions."""
_refused: dict[Hashable, tuple[CompileOutcome, str]] = {}
"""Packages that cannot be built or are slower: they are not tried again in this process."""


class CompiledMismatch(Exception):  # noqa: N818 (the name states what happened)
    """The compiled functions disagree with the original functions."""


class Tier:
    """Compiled evaluation for one evaluator. `report` gives the outcome."""

    def __init__(self, evaluator: Evaluator, *, always: bool) -> None:
        self._evaluator, self._always = evaluator, always
        self._so_far = Compilation(CompileOutcome.NOT_WORTH_IT)
        self.evaluations = 0
        """The number of compiled evaluations."""
        self._checks = 0
        self.on_verified: Callable[[], None] = lambda: None
        """Called when all points evaluated so far are verified."""
        self._packages: Packages | None = None
        self._compiled: Compiled | None = None
        self._ended = self._looked_on_disk = self._looked_in_process = False
        self._key = identity(evaluator)
        self._recent: deque[tuple[Vector, float, Vector]] = deque(maxlen=4)  # values, not trial points, which reference graphs
        self._until_check = self._between = EVALUATIONS_BEFORE_RECHECK
        self._until_look = 0
        clock = evaluator.clock
        self._eager_spans = [clock.phase(phase) for phase in (Phase.VALUES, Phase.GRADIENTS, Phase.JACOBIANS)]
        self._building_phase, self._checking = clock.phase(Phase.BUILD), clock.phase(Phase.CHECKS)
        reason = self._unsuitable()
        if reason:
            self._end(CompileOutcome.REFUSED, reason)

    @property
    def report(self) -> Compilation:
        """The outcome of compiling so far."""
        return replace(self._so_far, evaluations=self.evaluations, checks=self._checks)

    def _unsuitable(self) -> str:
        variables = self._evaluator.variables
        if self._evaluator.problem.gradients:
            return "they compute their own gradients"
        if variables.module is not None and variables.device.type != "cuda":  # CUDA graphs do not trace the module
            return "the variables are those of a module"
        return (
            "" if variables.device.type in ("cpu", "cuda") else f"the variables are on a device of type {variables.device.type}"
        )

    def __call__(self, x: Vector) -> Trial | None:
        """The values at x from the compiled functions; None if these are not available (yet)."""
        if self._ended:
            return None
        if self._compiled is None:
            self._until_look -= 1
            if self._recent and self._until_look <= 0:  # there are points to compare at
                self._until_look = EVALUATIONS_BETWEEN_LOOKUPS
                self._consider(x)
            if self._compiled is None:
                return None
        try:
            f, values, derivatives = self._compiled(x, self._evaluator.costs)
        except GuardFailed as change:
            self._end(CompileOutcome.CHANGED, str(change))
            return None
        except Exception:
            return None  # the original function raises a better error
        if not isfinite(f) or not np.isfinite(values).all():
            return None  # at the boundary of the domain, the original function decides
        self.evaluations += 1
        self._until_check -= 1
        if self._until_check <= 0:
            self._check_again(x, f, values)
        return self._make_trial(x, f, values, EagerFallback(derivatives, self._evaluator, x))

    def _make_trial(self, x: Vector, f: float, values: Vector, derivatives: Derivatives | None = None) -> Trial:
        """The trial point with values of the compiled functions, with bounds and in the solver's units."""
        forms = self._evaluator.forms
        assert forms is not None
        return self._evaluator.make_trial(x, f, values, forms[1].size, derivatives)

    def remember(self, trial: Trial) -> None:
        """Store a point that was evaluated by the original functions."""
        if not self._ended:
            self._recent.append((self._evaluator.in_user_units(trial.x), trial.f, trial.c))

    def forget(self) -> None:
        """Drop the stored points, which are in other units."""
        self._recent.clear()

    def confirm(self, x: Vector, f: float, c: Vector) -> Trial:
        """Evaluate the original functions at x and compare the values with f and c; raises `CompiledMismatch`."""
        with self._checking:
            trial = self._evaluator.evaluate_eagerly(self._evaluator.in_user_units(x))
            if self.evaluations:
                try:
                    self._compare_values(f, c, trial.f, trial.c)
                except CompiledMismatch as mismatch:
                    self._end(CompileOutcome.DISAGREED, str(mismatch))
                    raise
                self._checks += 1
            return trial

    def stop(self) -> None:
        """Finish for this run. Builds continue, since another run may follow."""
        if self._key in _pending and not self._ended and self._compiled is None:
            self._so_far, self.evaluations, self._checks = Compilation(CompileOutcome.NOT_READY), 0, 0
        if self._compiled is not None:
            reuse.remember(self._evaluator, self._compiled)
        else:
            _spent[self._key] = self._seconds()
            if len(_spent) > MAX_REMEMBERED_FUNCTIONS:
                del _spent[next(iter(_spent))]

    def _seconds(self) -> float:
        """Time spent on evaluating these functions, including earlier runs of this process."""
        return sum(span.seconds for span in self._eager_spans) + _spent.get(self._key, 0.0)

    def _end(self, outcome: CompileOutcome, reason: str) -> None:
        self._ended, self._compiled = True, None
        self._so_far = replace(self._so_far, outcome=outcome, reason=reason)
        logger.info("compiled functions: %s", self.report)

    def _give_up(self, outcome: CompileOutcome, reason: str) -> None:
        """Stop compiling, also for later runs of exactly the same functions."""
        if self._packages is not None:
            _refused[self._packages.name] = outcome, reason
            if len(_refused) > MAX_REMEMBERED_FUNCTIONS:
                del _refused[next(iter(_refused))]
        self._end(outcome, reason)

    def _consider(self, x: Vector) -> None:
        """Look for packages, start to build them, or switch to them, if it is time."""
        if not self._looked_on_disk and not self._looked_in_process:
            self._looked_in_process = True
            earlier = reuse.find(self._evaluator)
            if earlier is not None:
                self._looked_on_disk = True
                self._take_over(lambda: earlier, proven=True)
                return
        pending = _pending.get(self._key)
        if pending is not None:
            if pending.done:
                self._collect()
        elif not self._looked_on_disk:
            if self._always or self._seconds() >= self._lookup_after_seconds():
                self._look_on_disk()
        elif self._always or self._seconds() >= _build_after_seconds():
            self._build(x)

    def _lookup_after_seconds(self) -> float:
        return LOOKUP_AFTER_SECONDS if "torch._dynamo" in sys.modules else LOOKUP_AFTER_SECONDS_WITH_IMPORT

    def _look_on_disk(self) -> None:
        self._looked_on_disk = True
        variables, forms = self._evaluator.variables, self._evaluator.forms
        assert forms is not None
        # The index avoids importing the package store if it has nothing for this problem.
        if (
            self._always
            or variables.device.type == "cuda"
            or has_entry(variables.size, forms[0].size + forms[1].size, forms[1].size)
        ):
            self._take_over(self._load_saved)

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
                self._give_up(CompileOutcome.REFUSED, _line(error))
                return
            _pending[self._key] = self._packages
            if not self._always:
                return
            self._packages.wait()
        self._collect()

    def _collect(self) -> None:
        """Switch to finished packages, built for this run or an earlier run of the same functions."""
        packages = _pending.pop(self._key, None)
        if packages is None:
            return  # another thread has collected them
        if packages is self._packages:
            self._take_over(packages.finish)
        else:
            try:
                with self._building_phase:
                    packages.finish()  # which stores them on disk
            except Exception as error:
                self._give_up(CompileOutcome.REFUSED, _line(error))
                return
            self._look_on_disk()

    def _form(self) -> FlatForm:
        evaluator = self._evaluator
        assert evaluator.forms is not None
        return flat_form(evaluator.problem, evaluator.variables, evaluator.forms)

    def _new_packages(self, at: Vector) -> Packages:
        return Packages(self._form(), self._evaluator.variables.size, at)

    def _load_saved(self) -> Compiled | None:
        variables = self._evaluator.variables
        if variables.device.type == "cuda":
            return record_cuda_graphs(self._form(), self._recent[-1][0], variables.device)
        self._packages = self._new_packages(self._recent[-1][0])
        if _refused and not self._always and self._packages.name in _refused:
            self._end(*_refused[self._packages.name])
            return None
        return self._packages.load_saved()

    def _take_over(self, find: Callable[[], Compiled | None], *, proven: bool = False) -> None:
        try:
            with self._building_phase:
                compiled = find()
            if compiled is None:
                return
            with self._checking:
                faster = self._prove(compiled, proven=proven)
        except Exception as error:
            if isinstance(error, GuardFailed) and proven:
                self._looked_on_disk = False  # it was compiled for values that have changed since
                return
            if self._packages is not None and self._packages.from_disk:
                self._packages.drop()  # it will be rebuilt
                return
            outcome = CompileOutcome.DISAGREED if isinstance(error, CompiledMismatch) else CompileOutcome.REFUSED
            self._give_up(outcome, _line(error))
            return
        packages = self._packages
        if packages is not None:
            self._so_far = replace(self._so_far, build_seconds=packages.seconds, from_disk=packages.from_disk)
        if not faster:
            self._give_up(CompileOutcome.SLOWER, "")
            return
        self._compiled = compiled
        self._so_far = replace(self._so_far, outcome=CompileOutcome.USED)
        self._recent.clear()
        self.on_verified()

    def _prove(self, compiled: Compiled, *, proven: bool = False) -> bool:
        """Compare at visited points and near them; whether compiled is faster, unless known. Raises `CompiledMismatch`."""
        eager_seconds, compiled_seconds = [], []
        for x, f, c in list(self._recent):
            trial = self._make_trial(x, *compiled(x, self._evaluator.costs))
            self._compare_values(trial.f, trial.c, f, c)
            neighbor, seconds = self._evaluate_neighbor(x)
            if neighbor is not None:
                started = perf_counter()
                nearby = self._evaluator.in_user_units(neighbor.x)
                trial = self._make_trial(nearby, *compiled(nearby, self._evaluator.costs))
                _ = trial.differentiable
                compiled_seconds.append(perf_counter() - started)
                eager_seconds.append(seconds)
                self._compare(trial, neighbor)
                self._checks += 1
        if not eager_seconds:
            raise CompiledMismatch("no point was found at which gradients could be compared")
        return proven or min(compiled_seconds) < MAX_TIME_RATIO * min(eager_seconds)

    def _evaluate_neighbor(self, x: Vector) -> tuple[Trial | None, float]:
        """The original functions at a point near x where gradients exist, and the seconds they took."""
        generator = np.random.default_rng(len(x))
        for size in (RELATIVE_SHIFT, 0.1 * RELATIVE_SHIFT, 1e-3 * RELATIVE_SHIFT):
            shift = size * np.maximum(1.0, np.abs(x)) * generator.standard_normal(len(x))
            started = perf_counter()
            try:
                trial = self._evaluator.evaluate_eagerly(x + shift)
                if trial.finite and trial.differentiable:
                    return trial, perf_counter() - started
            except FunctionFailed:
                continue
        return None, 0.0

    def _check_again(self, x: Vector, f: float, values: Vector) -> None:
        with self._checking:
            assert self._compiled is not None
            try:
                eager, trial = self._evaluator.evaluate_eagerly(x), self._make_trial(x, f, values)
                self._compare_values(trial.f, trial.c, eager.f, eager.c)
                neighbor, _ = self._evaluate_neighbor(x)
                if neighbor is not None:
                    nearby = self._evaluator.in_user_units(neighbor.x)
                    self._compare(self._make_trial(nearby, *self._compiled(nearby, self._evaluator.costs)), neighbor)
            except GuardFailed as change:
                self._end(CompileOutcome.CHANGED, str(change))
                return
            except CompiledMismatch as mismatch:
                self._end(CompileOutcome.DISAGREED, str(mismatch))
                raise
        self._between = min(MAX_EVALUATIONS_BETWEEN_CHECKS, 2 * self._between)
        self._until_check = self._between
        self._checks += 1
        self.on_verified()

    def _compare(self, compiled: Trial, eager: Trial) -> None:
        self._compare_values(compiled.f, compiled.c, eager.f, eager.c)
        self._require_agreement("the gradient of the objective", compiled.gradient, eager.gradient, GRADIENT_TOLERANCE_FACTOR)
        self._require_agreement("a gradient of a constraint", compiled.jacobian, eager.jacobian, GRADIENT_TOLERANCE_FACTOR)

    def _compare_values(self, f: float, c: Vector, eager_f: float, eager_c: Vector) -> None:
        self._require_agreement("the objective", np.array([f]), np.array([eager_f]), 1.0)
        self._require_agreement("a constraint", c, eager_c, 1.0)

    def _require_agreement(self, what: str, compiled: NDArray[np.float64], eager: NDArray[np.float64], factor: float) -> None:
        tolerance = factor * (1e-4 if self._evaluator.variables.single_precision else 1e-9)
        if compiled.shape != eager.shape:
            raise CompiledMismatch(f"{what} has a different shape")
        finite = np.isfinite(eager)
        same = np.where(finite, np.isfinite(compiled), (compiled == eager) | (np.isnan(compiled) & np.isnan(eager)))
        difference = np.abs(np.where(finite & same, compiled - eager, 0.0))
        # The scale of a gradient is its largest entry, since its sums cancel; the scale of a value is the value itself.
        size = np.abs(np.where(finite, eager, 0.0))
        scale = size.max(axis=-1, keepdims=True, initial=0.0) if factor > 1.0 else size
        if not same.all() or (difference > tolerance * (1.0 + scale)).any():
            raise CompiledMismatch(f"{what} differed by {difference.max(initial=0.0):.1e}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _build_after_seconds() -> float:
    return BUILD_AFTER_SECONDS if _cores() > 1 else BUILD_AFTER_SECONDS_ON_ONE_CORE


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    if lines and type(error).__name__ == "RefusalError":
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
