"""Decisions made earlier or later: reuse from disk, and building in the background."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import Any

from compile_inspect.agreement import compare
from compile_inspect.records.decision import Decision, TuningOutcome, VariantResult
from compile_inspect.tuning.background import Build
from compile_inspect.tuning.callables import make_callable
from compile_inspect.tuning.decision_cache import DecisionCache
from compile_inspect.tuning.selection import decide, preserve_inputs, select_fastest
from compile_inspect.tuning.tuned import Tuned
from compile_inspect.variants import Prepared, RefusalError, Task, variant
from compile_inspect.variants.base import one_line
from compile_inspect.variants.inductor import AotInductor, prepare_flat

logger = logging.getLogger("compile_inspect")

MAX_SWITCH_SECONDS = 0.1
"""Time that the call which switches to a package may spend on measuring it."""


def load_cached(task: Task, decision_cache: DecisionCache, started: float, *, reuse_outputs: bool) -> Tuned | None:
    """The version that an earlier process decided on, if it is cached, can be prepared and still agrees with eager."""
    entry = decision_cache.load(task)
    if entry is None:
        return None
    decision, package = entry
    tuned = Tuned(task.function, task.function, replace(decision, from_disk=True, seconds=perf_counter() - started))
    if decision.variant == "eager":
        return tuned
    try:
        with preserve_inputs(task):
            prepared = _prepare_cached(task, decision.variant, None if package is None else str(package))
        fast = make_callable(task, prepared, tuned.fall_back, reuse_outputs=reuse_outputs)
        comparison = compare(task, prepared, samples=1, seed=0)
        if not comparison.agrees:
            raise RefusalError(comparison.reason)
    except Exception as error:  # an entry that does not work, for any reason, is built again
        logger.info("dropping the cached decision for %s: %s", task.name, one_line(error))
        decision_cache.drop(task)
        return None
    tuned.replace(fast, replace(decision, from_disk=True, seconds=perf_counter() - started))
    return tuned


def _prepare_cached(task: Task, name: str, package: str | None) -> Prepared:
    if package is None:
        return variant(name).prepare(task)
    from compile_inspect import torch_private

    return prepare_flat(AotInductor(), task.program, torch_private.load_package(package), package=package)


def tune_in_background(task: Task, decision_cache: DecisionCache | None, started: float, samples: int) -> Tuned:
    """Run eagerly now; switch to another process's package when it is ready, agrees, and is faster."""
    waiting = decide(task, "eager", "A package is being built in another process.", started, {})
    tuned = Tuned(task.function, task.function, waiting)
    try:
        with preserve_inputs(task):
            build = Build(task)
    except Exception as error:  # what cannot be traced runs eagerly
        tuned.replace(task.function, _eager_decision(task, started, one_line(error)))
        return tuned

    def eager_until_built(*args: Any, **kwargs: Any) -> Any:
        if build.done:
            _switch(task, build, tuned, decision_cache, started, samples)
            return tuned(*args, **kwargs)
        return task.function(*args, **kwargs)

    tuned.__dict__["build"] = build
    tuned.replace(eager_until_built, waiting)
    return tuned


def _switch(task: Task, build: Build, tuned: Tuned, decision_cache: DecisionCache | None, started: float, samples: int) -> None:
    """Verify the package and switch to it, or stay with eager."""
    try:
        with preserve_inputs(task):
            flat = build.load()
            prepared = prepare_flat(AotInductor(), task.program, flat, package=str(build.package))
        prepared = replace(prepared, build_seconds=perf_counter() - started)
        fast = make_callable(task, prepared, tuned.fall_back)
        comparison = compare(task, prepared, samples=samples, seed=0)
        if not comparison.agrees:
            raise RefusalError(comparison.reason)
    except Exception as error:
        tuned.replace(task.function, _eager_decision(task, started, one_line(error)))
        build.stop()
        return
    name = prepared.variant.name
    results = {
        name: VariantResult(
            name, TuningOutcome.SLOWER, comparison.reason, prepared.build_seconds, assumptions=comparison.assumptions
        )
    }
    call, winner, reason = select_fastest(task, {name: (fast, prepared)}, results, MAX_SWITCH_SECONDS)
    tuned.replace(call, decide(task, winner, reason, started, results))
    if decision_cache is not None:
        decision_cache.save(task, tuned.decision, prepared.package if winner == name else None)
    build.stop()


def _eager_decision(task: Task, started: float, reason: str) -> Decision:
    refused = {"aot-inductor": VariantResult("aot-inductor", TuningOutcome.REFUSED, reason)}
    return decide(task, "eager", "No package could be built that agrees with it.", started, refused)
