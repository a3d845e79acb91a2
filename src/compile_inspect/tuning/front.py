"""`tune`: the fastest version of a function that is proven equal to eager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from compile_inspect.agreement import compare, make_reference
from compile_inspect.errors import TargetError
from compile_inspect.records.decision import Outcome, Tried
from compile_inspect.target import Target
from compile_inspect.tuning.choosing import decide, fastest, kept
from compile_inspect.tuning.later import in_background, reused
from compile_inspect.tuning.runners import Runner, runner
from compile_inspect.tuning.store import Store
from compile_inspect.tuning.tuned import Tuned
from compile_inspect.variants import Prepared, Refused, Task, Variant, tuning_variants, variant

logger = logging.getLogger("compile_inspect")

AUTOTUNING = 90.0
"""Seconds of the budget that must be left for a mode that tries kernels out."""


def tune(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    gradients: bool = False,
    budget: float = 120.0,
    variants: Sequence[str | Variant] | None = None,
    reuse_outputs: bool = False,
    cache: bool | str | Path = False,
    background: bool = False,
    samples: int = 3,
    **kwargs: Any,
) -> Tuned:
    """The fastest version of `function` that agrees with eager at inputs like these; eager itself if nothing wins.

    Every variant is built, compared with eager and with a float64 reference, and timed against the others, until
    `budget` seconds are used. The callable returned has the signature of `function`. It checks shapes, dtypes,
    devices, strides and the need for gradients of its inputs, the Python values and tensors the function reads, and
    torch's modes, and runs eagerly whatever is not as it was.

    With `gradients=True` the result can be differentiated as always; forward and backward are then chosen together.
    `reuse_outputs=True` lets a CUDA graph hand out memory that the next call overwrites: a few microseconds less.

    `cache=True`, or a directory, keeps the decision and its package for the next process, where it is compared with
    eager once more before it is used. `background=True` returns at once: calls run eagerly while another process
    builds a package, and the first call after it is ready proves it and goes on with it.

        fast = compile_inspect.tune(model, x)
        with torch.no_grad():
            y = fast(x)
        print(fast.decision)
    """
    started = perf_counter()
    task = _task(function, args, kwargs, gradients)
    store = None if cache is False else Store(None if cache is True else cache)
    kept = None if store is None else reused(task, store, started, reuse_outputs=reuse_outputs)
    if kept is not None:
        return kept
    if background:
        return in_background(task, store, started, samples)
    choices = tuning_variants(task) if variants is None else tuple(_as_variant(item) for item in variants)
    choices = tuple(item for item in choices if item.name != "eager")
    tried: dict[str, Tried] = {}
    tuned = Tuned(task.function, task.function, decide(task, "eager", "Nothing was tried.", started, {}))
    ready = _candidates(task, choices, tuned, tried, started, budget, samples, reuse_outputs=reuse_outputs)
    fast, chosen, reason = fastest(task, ready, tried)
    tuned.replace(fast, decide(task, chosen, reason, started, tried))
    if store is not None:
        store.save(task, tuned.decision, ready[chosen][1].package if chosen in ready else None)
    logger.info("%s", tuned.decision)
    return tuned


def _task(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], gradients: bool) -> Task:
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs; call tune(target) without further arguments")
        wanted = gradients if function.gradients is None else function.gradients
        return Task(function.function, function.args, function.kwargs, wanted, function.further)
    if not callable(function):
        raise TargetError(f"tune needs a callable, not {function!r:.80}")
    return Task(function, args, kwargs, gradients)


def _as_variant(item: str | Variant) -> Variant:
    return variant(item) if isinstance(item, str) else item


def _candidates(
    task: Task,
    choices: Sequence[Variant],
    tuned: Tuned,
    tried: dict[str, Tried],
    started: float,
    budget: float,
    samples: int,
    *,
    reuse_outputs: bool,
) -> dict[str, tuple[Runner, Prepared]]:
    """The variants that could be built, agree with eager, and can be called like the function."""
    reference = make_reference(task, samples=samples, seed=0)
    ready: dict[str, tuple[Runner, Prepared]] = {}
    for choice in choices:
        name = choice.name
        left = budget - (perf_counter() - started)
        if left < (AUTOTUNING if "max-autotune" in name else 0.0):
            tried[name] = Tried(name, Outcome.NOT_TRIED, f"{max(left, 0.0):.0f} s of the budget of {budget:g} s were left")
            continue
        try:
            with kept(task):
                prepared = choice.prepare(task)
            call = runner(task, prepared, tuned.fall_back, reuse_outputs=reuse_outputs)
        except Refused as refusal:
            tried[name] = Tried(name, Outcome.REFUSED, str(refusal))
            continue
        comparison = compare(task, prepared, samples=samples, seed=0, reference=reference)
        if not comparison.agrees:
            tried[name] = Tried(name, Outcome.DISAGREES, comparison.reason, prepared.build_seconds)
            continue
        tried[name] = Tried(name, Outcome.SLOWER, comparison.reason, prepared.build_seconds, assumptions=comparison.assumptions)
        ready[name] = (call, prepared)
    return ready
