"""A topic of the torch.compile tour: one problem, solved with and without compiled functions."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nonsmooth.minimize import minimize
from nonsmooth.options import CompileChoice

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide
    from nonsmooth.result import Result

SIZE = 40
_PAIRS = 5
_CACHE = "COMPILE_INSPECT_CACHE"
_EVALUATING = ("values", "gradients", "Jacobians")
_CHOICES = (
    "a different answer",
    "the same answer, faster from the first run on",
    "the same answer; the build pays back later",
)


@dataclass(frozen=True)
class SolverRun:
    """One run of the solver: its compile option, its answer, and where its time went."""

    name: str
    compile: CompileChoice
    seconds: float
    build_seconds: float
    evaluating_seconds: float
    evaluations: int
    compiled_evaluations: int
    f: float
    violation: float
    status: str
    proven: bool
    residual: float
    compilation: str
    """The outcome of compiling the functions, and the reason."""
    checks: int = 0
    """How often compiled functions were compared with the original functions."""

    @property
    def seconds_per_evaluation(self) -> float:
        """Average time to evaluate the functions and their derivatives at one point."""
        return self.evaluating_seconds / self.evaluations

    @property
    def seconds_without_build(self) -> float:
        """The time of the run without building."""
        return self.seconds - self.build_seconds


@dataclass(frozen=True)
class CompileComparison:
    """The measurements of `run_with_and_without_compile`: an eager run first, then compiled runs."""

    runs: tuple[SolverRun, ...]
    pairs: tuple[tuple[float, float], ...] = ()
    """Seconds of further interleaved runs: one eager, one with the existing build."""

    def answer(self) -> tuple[str, ...]:
        """Whether compiling changes the answer and whether it pays, with the figures of these runs."""
        eager, *others = self.runs
        lines = [
            f"{run.name}: {run.seconds:.2f} s, including {run.build_seconds:.2f} s for the build; {run.evaluations} "
            f"evaluations of {run.seconds_per_evaluation * 1e6:.0f} µs each, {run.compiled_evaluations} of them compiled and "
            f"{run.checks} checked. {run.compilation}"
            for run in self.runs
        ]
        proven = sum(run.proven for run in self.runs)
        if others:
            difference = max(abs(run.f - eager.f) for run in others)
            lines.append(
                f"The objective at the answer is {eager.f:.8g}, and no run differs from it by more than {difference:.1g}; "
                f"{proven} of {len(self.runs)} answers are proven with the original functions, compiled or not."
            )
        else:
            lines.append(f"The objective at the answer is {eager.f:.8g}; the answer is {'' if proven else 'not '}proven.")
        built = next((run for run in others if run.build_seconds > 0.05), None)
        if built is not None and self.pairs:
            lines.append(_payback(eager, built, self.pairs))
        return tuple(lines)


def _payback(eager: SolverRun, built: SolverRun, pairs: Sequence[tuple[float, float]]) -> str:
    """After how many runs a build pays back, or that it does not, if all pairs of runs agree."""
    savings = [before - after for before, after in pairs]
    saving, sample = median(savings), f"in {len(pairs)} pairs of runs"
    if min(savings) > 0:
        needed = max(1, math.ceil(built.build_seconds / saving))
        return (
            f"A run with the existing build saves {saving:.2f} s (median {sample}): the build pays back after {needed} such "
            f"{'run' if needed == 1 else 'runs'}, or in one run that is that much longer."
        )
    elsewhere = eager.evaluating_seconds < eager.seconds / 2
    reason = ": evaluating the functions takes less than half of its time." if elsewhere else "."
    if max(savings) < 0:
        return f"A run with the existing build is slower here, by {-saving:.2f} s (median {sample}){reason}"
    return f"The measurements do not show whether a run with the existing build is faster {sample}{reason}"


def chained_kinks(x: Tensor) -> tuple[Tensor, Tensor, None]:
    """A convex function with many kinks, and a bound on the 1-norm of its variables."""
    left, right = x[:-1], x[1:]
    pieces = torch.stack([left**4 + right**2, (2 - left) ** 2 + (2 - right) ** 2, 2 * torch.exp(right - left)])
    hinges = torch.maximum(-left - right, -left - right + left**2 + right**2 - 1)
    differences = 10 * (x - torch.roll(x, 1)).abs().max()
    return pieces.amax(0).sum() + hinges.sum() + differences, x.abs().sum() - 0.75 * SIZE, None


def run_with_and_without_compile(target: Target | None = None, *, guide: Guide | None = None) -> CompileComparison:
    """Solve one problem eagerly, with compiled functions, and once more with the same compiled functions.

    The problem is always the tour's own; the target is not used. Packages go into a temporary folder.
    """
    if guide is None:
        from compile_inspect.tour.guide import Guide

        guide = Guide.silent()
    start = torch.linspace(-1, 2, SIZE, dtype=torch.float64, device=guide.machine.device)
    choices: list[tuple[str, CompileChoice]] = [('compile="never"', "never")]
    if guide.machine.inductor or start.is_cuda:  # CUDA graphs need no compiler
        guide.ask("Compiled functions give the solver …", _CHOICES)
        choices += [('compile="always"', "always"), ('compile="always" again', "always")]
    else:
        guide.note(guide.machine.missing_requirement)
    with _own_cache():
        # Imports and threads are warmed up here, so that no measured run is charged for them.
        minimize(chained_kinks, start, compile="never", max_iterations=2)
        runs = []
        for name, choice in choices:
            with guide.working(f"solving with {name}"):
                runs.append(_run(name, choice, start))
        pairs = []
        if len(runs) > 1:
            with guide.working("solving in turn, with and without compiled functions"):
                pairs = [(_run("", "never", start).seconds, _run("", "always", start).seconds) for _ in range(_PAIRS)]
    comparison = CompileComparison(tuple(runs), tuple(pairs))
    _show(comparison, guide)
    return comparison


def _run(name: str, choice: CompileChoice, start: Tensor) -> SolverRun:
    started = perf_counter()
    result: Result = minimize(chained_kinks, start, compile=choice)
    seconds = perf_counter() - started
    return SolverRun(
        name,
        choice,
        seconds,
        result.time.get("build", 0.0),
        sum(result.time.get(phase, 0.0) for phase in _EVALUATING),
        result.evaluations,
        result.compilation.evaluations,
        float(result.f),
        float(result.violation),
        result.status.value,
        result.success,
        float(result.certificate.residual) if result.certificate is not None else float("nan"),
        f"{result.compilation.outcome.value} {result.compilation.reason}".strip(),
        result.compilation.checks,
    )


@contextmanager
def _own_cache() -> Iterator[None]:
    """Use an empty package cache, so that nothing from earlier runs is loaded and nothing from these runs stays."""
    before = os.environ.get(_CACHE)
    with tempfile.TemporaryDirectory(prefix="nonsmooth-lesson-", ignore_cleanup_errors=True) as folder:
        os.environ[_CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(_CACHE, None)
            if before is not None:
                os.environ[_CACHE] = before


def _show(comparison: CompileComparison, guide: Guide) -> None:
    columns = ["Run", ">Total", ">Build", ">Rest", ">Evaluations", ">Compiled", ">Per evaluation"]
    rows = [
        [
            run.name,
            *(f"{run.seconds:.2f} s", f"{run.build_seconds:.2f} s", f"{run.seconds_without_build:.2f} s"),
            *(str(run.evaluations), str(run.compiled_evaluations), f"{run.seconds_per_evaluation * 1e6:.0f} µs"),
        ]
        for run in comparison.runs
    ]
    guide.table(f"{SIZE} variables, one constraint, kinks everywhere", columns, rows)
    answers = [
        [run.name, f"{run.f:.10g}", f"{run.violation:.1g}", f"{run.residual:.1g}", run.status, run.compilation]
        for run in comparison.runs
    ]
    guide.table("The answers", ["Run", ">f", ">Violation", ">Residual", "Status", "Compiled functions"], answers)
    if len(comparison.runs) > 1:
        eager, built = comparison.runs[0], comparison.runs[1]
        same = abs(built.f - eager.f) <= 1e-6 * max(1.0, abs(eager.f))
        eager_seconds = min(eager.seconds, *(before for before, _ in comparison.pairs))
        guide.reveal(0 if not same else 1 if built.seconds < eager_seconds else 2)
