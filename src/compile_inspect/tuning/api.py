"""`tune` finds the fastest version of a function that is proven equal to eager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from compile_inspect.agreement import Reference, compare, make_reference
from compile_inspect.agreement.comparison import verdict_without_comparison
from compile_inspect.errors import TargetError
from compile_inspect.records.agreement import Verdict
from compile_inspect.records.decision import TuningOutcome, VariantResult
from compile_inspect.target import Target
from compile_inspect.timing.point_measurement import Progress
from compile_inspect.tuning.callables import TunedFunction, make_callable
from compile_inspect.tuning.decision_cache import DecisionCache
from compile_inspect.tuning.deferred import load_cached, tune_in_background
from compile_inspect.tuning.selection import decide, preserve_inputs, select_fastest
from compile_inspect.tuning.tuned import Tuned
from compile_inspect.variants import Prepared, RefusalError, Task, Variant, named_variants, tuning_variants

logger = logging.getLogger("compile_inspect")

MIN_AUTOTUNING_SECONDS = 90.0
"""A mode that benchmarks kernels is tried only if this much of the budget is left."""


def tune(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    gradients: bool = False,
    budget: float = 120.0,
    variants: str | Sequence[str | Variant] | None = None,
    reuse_outputs: bool = False,
    cache: bool | str | Path = False,
    background: bool = False,
    samples: int = 3,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Tuned:
    """Return the fastest version of `function` that agrees with eager for inputs like these; eager itself if nothing is faster.

    Every variant is built, compared with eager and with a float64 reference, and timed against the others, until
    `budget` seconds are used. The callable returned has the signature of `function`. Before every call it checks everything
    that Dynamo read when it captured the function (inputs, attributes, globals, closures, classes, hooks, torch's modes),
    and runs eagerly if something changed. A function that Dynamo cannot capture as one graph is not frozen. `progress` is
    called with the current step and the fraction that is done; at a terminal, a status line shows it. Ctrl-C ends the
    search, and `tune` returns the fastest version found so far.

    With `gradients=True` the result is differentiable as usual; forward and backward are then selected together.
    `reuse_outputs=True` lets a CUDA graph return memory that the next call overwrites, which saves a few microseconds.

    `cache=True`, or a directory, stores the decision and its package for the next process, which compares the package with
    eager again before using it. `background=True` returns at once: calls run eagerly while another process builds a
    package, and the first call after it is ready verifies it and switches to it.

        fast = compile_inspect.tune(model, x)
        with torch.no_grad():
            y = fast(x)
        print(fast.decision)
    """
    started = perf_counter()
    task = _task(function, args, kwargs, gradients)
    decision_cache = None if cache is False else DecisionCache(None if cache is True else cache)
    cached = None if decision_cache is None else load_cached(task, decision_cache, started, reuse_outputs=reuse_outputs)
    if cached is not None:
        return cached
    if background:
        return tune_in_background(task, decision_cache, started, samples)
    choices = tuning_variants(task) if variants is None else named_variants(variants)
    choices = tuple(item for item in choices if item.name != "eager")
    tuned = Tuned(task.function, task.function, decide(task, "eager", "Nothing was tried.", started, {}))
    with _progress_display(progress, task.name) as report:
        search = _Search(task, tuned, started, budget, samples, reuse_outputs, report)
        ready = _find_candidates(search, choices)
        report("timing the variants that agree", 1.0)
        try:
            fast, winner, reason = select_fastest(task, ready, search.results)
        except KeyboardInterrupt:
            fast, winner, reason = task.function, "eager", "Timing was interrupted from the keyboard."
    tuned.replace(fast, decide(task, winner, reason, started, search.results))
    if decision_cache is not None:
        decision_cache.save(task, tuned.decision, ready[winner][1].package if winner in ready else None)
    logger.info("%s", tuned.decision)
    return tuned


def _task(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], gradients: bool) -> Task:
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs; call tune(target) without further arguments")
        gradients_required = gradients if function.gradients is None else function.gradients
        return Task(function.function, function.args, function.kwargs, gradients_required, function.further)
    if not callable(function):
        raise TargetError(f"tune needs a callable, not {function!r:.80}")
    return Task(function, args, kwargs, gradients)


def _find_candidates(search: _Search, choices: Sequence[Variant]) -> dict[str, tuple[TunedFunction, Prepared]]:
    """The variants that could be built, agree with eager, and can be called like the function; Ctrl-C ends the search."""
    ready: dict[str, tuple[TunedFunction, Prepared]] = {}
    try:
        search.report("running eager", 0.0)
        reference = make_reference(search.task, samples=search.samples, seed=0)
        for number, choice in enumerate(choices):
            search.report(f"building and comparing {choice.name}", number / len(choices))
            candidate = search.candidate(choice, reference)
            if candidate is not None:
                ready[choice.name] = candidate
    except KeyboardInterrupt:
        for choice in choices:
            search.results.setdefault(
                choice.name, VariantResult(choice.name, TuningOutcome.NOT_TRIED, "interrupted from the keyboard")
            )
    return ready


@dataclass
class _Search:
    """One search for the fastest variant: its settings, and its outcomes so far."""

    task: Task
    tuned: Tuned
    started: float
    budget: float
    samples: int
    reuse_outputs: bool
    report: Progress
    results: dict[str, VariantResult] = field(default_factory=dict)

    def candidate(self, choice: Variant, reference: Reference) -> tuple[TunedFunction, Prepared] | None:
        """Build and compare a variant; None where it cannot be used, for a reason that is recorded."""
        name, task = choice.name, self.task
        seconds_left = self.budget - (perf_counter() - self.started)
        if seconds_left < (MIN_AUTOTUNING_SECONDS if "max-autotune" in name else 0.0):
            reason = f"{max(seconds_left, 0.0):.0f} s of the budget of {self.budget:g} s were left"
            return self._reject(name, TuningOutcome.NOT_TRIED, reason)
        early_verdict = verdict_without_comparison(reference)
        if early_verdict is not None:
            return self._reject(name, TuningOutcome.REFUSED, early_verdict.reason)
        if choice.reuses_output_buffers(task) and not self.reuse_outputs:
            return self._reject(
                name, TuningOutcome.REFUSED, "the next call overwrites its results; reuse_outputs=True allows that"
            )
        try:
            with preserve_inputs(task):
                prepared = choice.prepare(task)
            call = make_callable(task, prepared, self.tuned.fall_back, reuse_outputs=self.reuse_outputs)
        except RefusalError as refusal:
            return self._reject(name, TuningOutcome.REFUSED, str(refusal))
        if prepared.eager_reason is not None:
            return self._reject(name, TuningOutcome.REFUSED, prepared.eager_reason.value, prepared.build_seconds)
        comparison = compare(task, prepared, samples=self.samples, seed=0, reference=reference)
        if not comparison.agrees:
            outcome = TuningOutcome.DISAGREES if comparison.verdict is Verdict.DISAGREES else TuningOutcome.REFUSED
            return self._reject(name, outcome, comparison.reason, prepared.build_seconds)
        build_seconds = prepared.build_seconds
        self.results[name] = VariantResult(
            name, TuningOutcome.SLOWER, comparison.reason, build_seconds, assumptions=comparison.assumptions
        )
        return call, prepared

    def _reject(
        self, name: str, outcome: TuningOutcome, reason: str, seconds: float | None = None
    ) -> tuple[TunedFunction, Prepared] | None:
        self.results[name] = VariantResult(name, outcome, reason, seconds)
        return None


@contextmanager
def _progress_display(progress: Progress | None, name: str) -> Iterator[Progress]:
    """The progress callback of the caller; by default, a status line if standard error is a terminal."""
    if progress is not None:
        yield progress
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step, fraction: None
        return
    with console.status(f"tuning {name} …") as status:
        yield lambda step, fraction: status.update(f"tuning {name}: {step} ({fraction:.0%})")
