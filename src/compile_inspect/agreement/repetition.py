"""Call a variant again and again: later calls must agree with the first, and must not overwrite its results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_inputs, clone_tensor
from compile_inspect.agreement.judgment import judge
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.agreement.run_outcome import (
    RunOutcome,
    named_leaves,
    named_values,
    observe,
    preserve_state,
    same_value,
    seed_generators,
)
from compile_inspect.records.agreement import Difference, DifferenceKind
from compile_inspect.variants import Prepared
from compile_inspect.variants.base import one_line

MAX_CALLS = 100
"""How often a variant is called in a row."""
MAX_CALL_SECONDS = 3.0
"""Time limit for these calls."""


def repeat(reference: Reference, prepared: Prepared) -> tuple[list[Difference], str]:
    """Call a variant again and again at the example; returns what differs, and which calls were left out, as text."""
    point = reference.points[0]
    if point.eager.error is not None:
        return [], ""
    reuses_buffers = prepared.variant.reuses_output_buffers(reference.task)
    differences = [] if reuses_buffers else list(_find_overwritten_results(reference, prepared, point))
    started, calls = perf_counter(), 1
    first: RunOutcome | None = None
    with _cheap_runner(reference, point) as run_once:
        while calls <= MAX_CALLS and not differences:
            outcome = run_once(prepared)
            if first is None:
                first = outcome
            elif outcome.error is not None or not _same_outcome(outcome, first):
                rerun = judge(observe(reference.task, prepared.run, point.inputs, point.seed), reference.baseline(point))
                judgment = judge(outcome, reference.baseline(point))
                differences = [_as_later_call(item, calls) for item in (*judgment.differences, *rerun.differences)]
            if perf_counter() - started > MAX_CALL_SECONDS and calls > 1:
                break
            calls += 1
    return (
        differences,
        "" if calls >= MAX_CALLS else f"calls after the {calls}th: the limit of {MAX_CALL_SECONDS:g} s was reached",
    )


def _as_later_call(item: Difference, call: int) -> Difference:
    message = f"at call {call}, but not at the first: {item.message}"
    return Difference(item.point, item.name, DifferenceKind.LATER_CALL, message, item.error, item.eager_error, item.allowed)


@contextlib.contextmanager
def _cheap_runner(reference: Reference, point: Point) -> Iterator[Any]:
    """Yield a function that runs a variant at a point; held state is checked only once if eager does not change it."""
    task = reference.task
    if point.eager.changes:
        yield lambda prepared: observe(task, prepared.run, point.inputs, point.seed)
        return

    def run_once(prepared: Prepared) -> RunOutcome:
        args, kwargs = clone_inputs(point.inputs)
        try:
            with seed_generators(point.seed) if reference.random else contextlib.nullcontext():
                return RunOutcome(named_values(task, prepared.run(*args, **kwargs), args, kwargs))
        except Exception as error:
            return RunOutcome(error=one_line(error))

    with preserve_state(task), torch_private.suppressed_compiler_output():
        yield run_once


def _same_outcome(one: RunOutcome, other: RunOutcome) -> bool:
    values, others = one.all_values, other.all_values
    return values.keys() == others.keys() and all(same_value(values[name], others[name]) for name in values)


def _find_overwritten_results(reference: Reference, prepared: Prepared, point: Point) -> Iterator[Difference]:
    """Results of a call that change when the variant is called again with other inputs."""
    task = reference.task
    others = [item for item in reference.points[1:] if item.matches_example and item.eager.error is None]
    other = others[0] if others else point
    args, kwargs = clone_inputs(point.inputs)
    try:
        with preserve_state(task), seed_generators(point.seed), torch_private.suppressed_compiler_output():
            step = prepared.run(*args, **kwargs)
    except Exception:
        return  # the comparison at the point reports it
    metadata = point.eager.metadata
    results = [(f"result{path}", leaf) for path, leaf in named_leaves(step.result) if torch_private.is_tensor(leaf)]
    # A result that shares memory with an input or a held tensor may change with it.
    owned_results = [
        (name, leaf) for name, leaf in results if name in metadata and not _shares_other_memory(metadata[name].shares, results)
    ]
    owned_results += [(f"gradient {position}", leaf) for position, leaf in enumerate(step.gradients)]
    before = [clone_tensor(leaf) for _, leaf in owned_results]
    observe(task, prepared.run, other.inputs, other.seed)
    for (name, leaf), copy in zip(owned_results, before, strict=True):
        try:
            unchanged = same_value(leaf, copy)
        except RuntimeError:  # CUDA graphs of torch.compile raise when a result is read after the next call
            return
        if not unchanged:
            message = f"it is overwritten when the variant is called again at {other.name}"
            yield Difference(point.name, name, DifferenceKind.LATER_CALL, message)
            return


def _shares_other_memory(shares: frozenset[str], results: list[tuple[str, Any]]) -> bool:
    """Whether a tensor shares memory with anything but results."""
    return bool(shares - {name for name, _ in results})
