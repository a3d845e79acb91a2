"""Decisions made earlier or later: reuse from disk, and building in the background."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import Any

from compile_inspect.agreement import compare
from compile_inspect.records.decision import Decision, Outcome, Tried
from compile_inspect.tuning.background import Build
from compile_inspect.tuning.choosing import decide, fastest, kept
from compile_inspect.tuning.runners import runner
from compile_inspect.tuning.store import Store
from compile_inspect.tuning.tuned import Tuned
from compile_inspect.variants import Prepared, Refused, Task, variant
from compile_inspect.variants.base import one_line
from compile_inspect.variants.inductor import AotInductor, from_flat

logger = logging.getLogger("compile_inspect")

PROOF_SECONDS = 0.1
"""Time that the call which switches to a package may spend on measuring it."""


def reused(task: Task, store: Store, started: float, *, reuse_outputs: bool) -> Tuned | None:
    """The version that an earlier process decided on, if it is cached, can be prepared and still agrees with eager."""
    entry = store.load(task)
    if entry is None:
        return None
    decision, package = entry
    tuned = Tuned(task.function, task.function, replace(decision, from_disk=True, seconds=perf_counter() - started))
    if decision.chosen == "eager":
        return tuned
    try:
        with kept(task):
            prepared = _ready(task, decision.chosen, None if package is None else str(package))
        fast = runner(task, prepared, tuned.fall_back, reuse_outputs=reuse_outputs)
        comparison = compare(task, prepared, samples=1, seed=0)
        if not comparison.agrees:
            raise Refused(comparison.reason)
    except Exception as error:  # an entry that does not work, for any reason, is built again
        logger.info("dropping the cached decision for %s: %s", task.name, one_line(error))
        store.drop(task)
        return None
    tuned.replace(fast, replace(decision, from_disk=True, seconds=perf_counter() - started))
    return tuned


def _ready(task: Task, name: str, package: str | None) -> Prepared:
    if package is None:
        return variant(name).prepare(task)
    from compile_inspect import torch_private

    return from_flat(AotInductor(), task.program, torch_private.load_package(package), package=package)


def in_background(task: Task, store: Store | None, started: float, samples: int) -> Tuned:
    """Run eagerly now; switch to another process's package when it is ready, agrees, and is faster."""
    waiting = decide(task, "eager", "A package is being built in another process.", started, {})
    tuned = Tuned(task.function, task.function, waiting)
    try:
        with kept(task):
            build = Build(task)
    except Exception as error:  # what cannot be traced runs eagerly
        tuned.replace(task.function, _eager(task, started, one_line(error)))
        return tuned

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        if build.done:
            _swap(task, build, tuned, store, started, samples)
            return tuned(*args, **kwargs)
        return task.function(*args, **kwargs)

    tuned.__dict__["build"] = build
    tuned.replace(meanwhile, waiting)
    return tuned


def _swap(task: Task, build: Build, tuned: Tuned, store: Store | None, started: float, samples: int) -> None:
    """Verify the package and switch to it, or stay with eager."""
    try:
        with kept(task):
            flat = build.load()
            prepared = from_flat(AotInductor(), task.program, flat, package=str(build.package))
        prepared = replace(prepared, build_seconds=perf_counter() - started)
        fast = runner(task, prepared, tuned.fall_back)
        comparison = compare(task, prepared, samples=samples, seed=0)
        if not comparison.agrees:
            raise Refused(comparison.reason)
    except Exception as error:
        tuned.replace(task.function, _eager(task, started, one_line(error)))
        build.stop()
        return
    name = prepared.variant.name
    tried = {name: Tried(name, Outcome.SLOWER, comparison.reason, prepared.build_seconds, assumptions=comparison.assumptions)}
    call, chosen, reason = fastest(task, {name: (fast, prepared)}, tried, PROOF_SECONDS)
    tuned.replace(call, decide(task, chosen, reason, started, tried))
    if store is not None:
        store.save(task, tuned.decision, prepared.package if chosen == name else None)
    build.stop()


def _eager(task: Task, started: float, reason: str) -> Decision:
    refused = {"aot-inductor": Tried("aot-inductor", Outcome.REFUSED, reason)}
    return decide(task, "eager", "No package could be built that agrees with it.", started, refused)
