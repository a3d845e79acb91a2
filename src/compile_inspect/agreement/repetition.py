"""Call a variant again and again: later calls must agree with the first, and must not overwrite its results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_tensor, cloned
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import (
    Observation,
    named_leaves,
    named_values,
    observe,
    preserved_state,
    same,
    seeded,
)
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.records.agreement import Difference, DifferenceKind
from compile_inspect.variants import Prepared
from compile_inspect.variants.base import one_line

CALLS = 100
"""How often a variant is called in a row."""
CALL_SECONDS = 3.0
"""Time limit for these calls."""


def repeat(reference: Reference, prepared: Prepared) -> tuple[list[Difference], str]:
    """Call a variant again and again at the example; returns what differs, and which calls were left out, as text."""
    point = reference.points[0]
    if point.eager.error is not None:
        return [], ""
    lent = prepared.variant.lends_results(reference.task)
    differences = [] if lent else list(_overwritten(reference, prepared, point))
    started, calls = perf_counter(), 1
    first: Observation | None = None
    with _sparing(reference, point) as run_once:
        while calls <= CALLS and not differences:
            seen = run_once(prepared)
            if first is None:
                first = seen
            elif seen.error is not None or not _equal(seen, first):
                later = judge(observe(reference.task, prepared.run, point.inputs, point.seed), reference.bystanders(point))
                judged = judge(seen, reference.bystanders(point))
                differences = [_later(item, calls) for item in (*judged.differences, *later.differences)]
            if perf_counter() - started > CALL_SECONDS and calls > 1:
                break
            calls += 1
    return differences, "" if calls >= CALLS else f"calls after the {calls}th: the limit of {CALL_SECONDS:g} s was reached"


def _later(item: Difference, call: int) -> Difference:
    message = f"at call {call}, but not at the first: {item.message}"
    return Difference(item.point, item.name, DifferenceKind.LATER_CALL, message, item.error, item.eager_error, item.allowed)


@contextlib.contextmanager
def _sparing(reference: Reference, point: Point) -> Iterator[Any]:
    """Yield a function that runs a variant at a point; held state is checked only once if eager does not change it."""
    task = reference.task
    if point.eager.changes:
        yield lambda prepared: observe(task, prepared.run, point.inputs, point.seed)
        return

    def run_once(prepared: Prepared) -> Observation:
        args, kwargs = cloned(point.inputs)
        try:
            with seeded(point.seed) if reference.random else contextlib.nullcontext():
                return Observation(named_values(task, prepared.run(*args, **kwargs), args, kwargs))
        except Exception as error:
            return Observation(error=one_line(error))

    with preserved_state(task), torch_private.suppressed_compiler_output():
        yield run_once


def _equal(one: Observation, other: Observation) -> bool:
    mine, others = one.everything, other.everything
    return mine.keys() == others.keys() and all(same(mine[name], others[name]) for name in mine)


def _overwritten(reference: Reference, prepared: Prepared, point: Point) -> Iterator[Difference]:
    """Results of a call that change when the variant is called again with other inputs."""
    task = reference.task
    others = [item for item in reference.points[1:] if item.as_example and item.eager.error is None]
    other = others[0] if others else point
    args, kwargs = cloned(point.inputs)
    try:
        with preserved_state(task), seeded(point.seed), torch_private.suppressed_compiler_output():
            step = prepared.run(*args, **kwargs)
    except Exception:
        return  # the comparison at the point reports it
    forms = point.eager.forms
    results = [(f"result{path}", leaf) for path, leaf in named_leaves(step.result) if torch_private.is_tensor(leaf)]
    # A result that shares memory with an input or a held tensor may change with it.
    own = [(name, leaf) for name, leaf in results if name in forms and not _lent(forms[name].shares, results)]
    own += [(f"gradient {place}", leaf) for place, leaf in enumerate(step.gradients)]
    before = [clone_tensor(leaf) for _, leaf in own]
    observe(task, prepared.run, other.inputs, other.seed)
    for (name, leaf), copy in zip(own, before, strict=True):
        try:
            unchanged = same(leaf, copy)
        except RuntimeError:  # CUDA graphs of torch.compile raise when a result is read after the next call
            return
        if not unchanged:
            message = f"it is overwritten when the variant is called again at {other.name}"
            yield Difference(point.name, name, DifferenceKind.LATER_CALL, message)
            return


def _lent(shares: frozenset[str], results: list[tuple[str, Any]]) -> bool:
    """Whether a tensor shares memory with anything but results."""
    return bool(shares - {name for name, _ in results})
