"""A topic of the tour of torch.compile: the same problem solved with and without compiled functions."""

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
    "another answer",
    "the same answer, and quicker from the first run on",
    "the same answer; the build is paid back later",
)


@dataclass(frozen=True)
class SolverRun:
    """One run of the solver: how it was told to compile, what it found, and where its time went."""

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
    """What became of compiling the functions, and why."""
    checks: int = 0
    """How often compiled functions were compared with the functions themselves."""

    @property
    def seconds_per_evaluation(self) -> float:
        """The functions and their derivatives at one point, on average."""
        return self.evaluating_seconds / self.evaluations

    @property
    def seconds_without_build(self) -> float:
        """What the run takes once everything is built."""
        return self.seconds - self.build_seconds


@dataclass(frozen=True)
class WithAndWithout:
    """What `run_with_and_without_compile` has measured: a run of the functions as they are, then compiled ones."""

    runs: tuple[SolverRun, ...]
    pairs: tuple[tuple[float, float], ...] = ()
    """Seconds of further runs in turn: with the functions as they are, and with what is built."""

    def answer(self) -> tuple[str, ...]:
        """Whether compiling changes the answer, and whether it pays, in figures of these runs."""
        plain, *others = self.runs
        told = [
            f"{run.name}: {run.seconds:.2f} s, of which {run.build_seconds:.2f} s for building; {run.evaluations} evaluations "
            f"of {run.seconds_per_evaluation * 1e6:.0f} µs each, {run.compiled_evaluations} of them compiled and "
            f"{run.checks} checked. {run.compilation}"
            for run in self.runs
        ]
        proven = sum(run.proven for run in self.runs)
        if others:
            apart = max(abs(run.f - plain.f) for run in others)
            told.append(
                f"The objective at the answers is {plain.f:.8g}, and no run differs from it by more than {apart:.1g}; "
                f"{proven} of {len(self.runs)} answers are proven by the functions themselves, compiled or not."
            )
        else:
            told.append(f"The objective at the answer is {plain.f:.8g}; the answer is {'' if proven else 'not '}proven.")
        built = next((run for run in others if run.build_seconds > 0.05), None)
        if built is not None and self.pairs:
            told.append(_paid_back(plain, built, self.pairs))
        return tuple(told)


def _paid_back(plain: SolverRun, built: SolverRun, pairs: Sequence[tuple[float, float]]) -> str:
    """After how many runs a build has paid, or that it has not, as far as pairs of runs agree."""
    savings = [before - after for before, after in pairs]
    saved, seen = median(savings), f"in {len(pairs)} pairs of runs"
    if min(savings) > 0:
        needed = max(1, math.ceil(built.build_seconds / saved))
        return (
            f"A run on what is built saves {saved:.2f} s (median {seen}): the build is paid back after {needed} such "
            f"{'run' if needed == 1 else 'runs'}, or one run that is that much longer."
        )
    elsewhere = plain.evaluating_seconds < plain.seconds / 2
    why = ": the functions are not what it spends its time on." if elsewhere else "."
    if max(savings) < 0:
        return f"A run on what is built is slower here, by {-saved:.2f} s (median {seen}){why}"
    return f"Whether a run on what is built is faster cannot be told {seen}{why}"


def bent_chain(x: Tensor) -> tuple[Tensor, Tensor, None]:
    """A convex function with many kinks, and a bound on the sum of sizes of its variables."""
    left, right = x[:-1], x[1:]
    pieces = torch.stack([left**4 + right**2, (2 - left) ** 2 + (2 - right) ** 2, 2 * torch.exp(right - left)])
    bends = torch.maximum(-left - right, -left - right + left**2 + right**2 - 1)
    steps = 10 * (x - torch.roll(x, 1)).abs().max()
    return pieces.amax(0).sum() + bends.sum() + steps, x.abs().sum() - 0.75 * SIZE, None


def run_with_and_without_compile(target: Target | None = None, *, guide: Guide | None = None) -> WithAndWithout:
    """Solve one problem with the functions as they are, with compiled ones, and with those once more.

    The problem is the tour's own, whatever the target. Packages go into a folder that is gone afterwards.
    """
    if guide is None:
        from compile_inspect.tour.guide import Guide

        guide = Guide.silent()
    start = torch.linspace(-1, 2, SIZE, dtype=torch.float64, device=guide.machine.device)
    ways: list[tuple[str, CompileChoice]] = [('compile="never"', "never")]
    if guide.machine.inductor or start.is_cuda:  # CUDA graphs need no compiler
        guide.ask("Compiled functions give the solver …", _CHOICES)
        ways += [('compile="always"', "always"), ('compile="always" again', "always")]
    else:
        guide.note(guide.machine.missing_requirement)
    with _own_cache():
        minimize(bent_chain, start, compile="never", max_iterations=2)  # imports and threads, which no run should pay for
        runs = []
        for name, choice in ways:
            with guide.working(f"solving with {name}"):
                runs.append(_run(name, choice, start))
        pairs = []
        if len(runs) > 1:
            with guide.working("solving in turn, with and without"):
                pairs = [(_run("", "never", start).seconds, _run("", "always", start).seconds) for _ in range(_PAIRS)]
    found = WithAndWithout(tuple(runs), tuple(pairs))
    _show(found, guide)
    return found


def _run(name: str, choice: CompileChoice, start: Tensor) -> SolverRun:
    began = perf_counter()
    result: Result = minimize(bent_chain, start, compile=choice)
    took = perf_counter() - began
    return SolverRun(
        name,
        choice,
        took,
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
    """Packages of earlier runs are not seen, and those of these runs are not kept."""
    before = os.environ.get(_CACHE)
    with tempfile.TemporaryDirectory(prefix="nonsmooth-lesson-", ignore_cleanup_errors=True) as folder:
        os.environ[_CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(_CACHE, None)
            if before is not None:
                os.environ[_CACHE] = before


def _show(found: WithAndWithout, guide: Guide) -> None:
    columns = ["Run", ">Total", ">Build", ">Rest", ">Evaluations", ">Compiled", ">Per evaluation"]
    rows = [
        [
            run.name,
            *(f"{run.seconds:.2f} s", f"{run.build_seconds:.2f} s", f"{run.seconds_without_build:.2f} s"),
            *(str(run.evaluations), str(run.compiled_evaluations), f"{run.seconds_per_evaluation * 1e6:.0f} µs"),
        ]
        for run in found.runs
    ]
    guide.table(f"{SIZE} variables, one constraint, kinks everywhere", columns, rows)
    answers = [
        [run.name, f"{run.f:.10g}", f"{run.violation:.1g}", f"{run.residual:.1g}", run.status, run.compilation]
        for run in found.runs
    ]
    guide.table("The answers", ["Run", ">f", ">Violation", ">Residual", "Status", "Compiled functions"], answers)
    if len(found.runs) > 1:
        plain, built = found.runs[0], found.runs[1]
        same = abs(built.f - plain.f) <= 1e-6 * max(1.0, abs(plain.f))
        guide.reveal(0 if not same else 1 if built.seconds < min(plain.seconds, *(before for before, _ in found.pairs)) else 2)
