"""Select the fastest of several callables, and record how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

from compile_inspect import torch_private
from compile_inspect.agreement.run_outcome import preserve_state, seed_generators
from compile_inspect.records.decision import Decision, TuningOutcome, VariantResult
from compile_inspect.timing.sampling import faster, interleave, summarize
from compile_inspect.tuning.callables import TunedFunction
from compile_inspect.variants import Prepared, Task
from compile_inspect.variants.base import one_line

SAMPLING_SECONDS = 2.0
MIN_SPEEDUP_MARGIN = 0.03
"""A variant must be this much faster than eager to be preferred."""


def select_fastest(
    task: Task,
    ready: dict[str, tuple[TunedFunction, Prepared]],
    results: dict[str, VariantResult],
    seconds: float = SAMPLING_SECONDS,
) -> tuple[TunedFunction, str, str]:
    """The callable to use, the name of its variant, and the reason."""
    calls = {"eager": task.function} | {name: call for name, (call, _) in ready.items()}
    times = _sample_times(task, calls, results, seconds)
    summaries = {name: summarize(values) for name, values in times.items()}
    best = min(summaries, key=lambda name: summaries[name].median)
    if best != "eager" and not faster(times[best], times["eager"], by=MIN_SPEEDUP_MARGIN):
        best = "eager"
    ratio = summaries["eager"].median / summaries[best].median
    reason = "Nothing is faster beyond the noise." if best == "eager" else f"It is {ratio:.2g} times as fast as eager."
    for name, summary in summaries.items():
        old = results.get(name, VariantResult(name, TuningOutcome.SLOWER, "the function as it is"))
        outcome = TuningOutcome.CHOSEN if name == best else TuningOutcome.SLOWER
        results[name] = replace(old, outcome=outcome, median=summary.median, low=summary.low, high=summary.high)
    return calls[best], best, reason


def _sample_times(
    task: Task, calls: dict[str, TunedFunction], results: dict[str, VariantResult], seconds: float
) -> dict[str, tuple[float, ...]]:
    """Time everything that can be called repeatedly; whatever fails is removed, and the rest timed again."""
    failed: list[str] = []

    def watch(name: str, call: Callable[[], object]) -> Callable[[], object]:
        def watched_call() -> object:
            try:
                return call()
            except Exception:
                failed.append(name)
                raise

        # Eager is not wrapped: if it fails, the user must see the exception.
        return call if name == "eager" else watched_call

    while True:
        try:
            with preserve_inputs(task):
                ready = {name: watch(name, single_call(task, call)) for name, call in calls.items()}
                return interleave(ready, device=task.device, seconds=seconds)
        except Exception as error:
            if not failed:
                raise
            name = failed.pop()
            del calls[name]
            build_seconds = results[name].build_seconds if name in results else None
            results[name] = VariantResult(
                name, TuningOutcome.REFUSED, f"it failed when called many times: {one_line(error)}", build_seconds
            )


@contextmanager
def preserve_inputs(task: Task) -> Iterator[None]:
    """Restore inputs, held tensors and random generators afterward.

    Inputs keep their memory: a CUDA graph may have been recorded to read it.
    """
    leaves = torch_private.flatten((task.args, dict(task.kwargs)))[0]
    inputs = [leaf.detach() for leaf in leaves if torch_private.is_tensor(leaf)]
    copies, versions = [tensor.clone() for tensor in inputs], [tensor._version for tensor in inputs]
    with preserve_state(task), seed_generators(0):
        try:
            yield
        finally:
            for tensor, copy, version in zip(inputs, copies, versions, strict=True):
                if tensor._version != version:
                    tensor.copy_(copy)


def single_call(task: Task, call: TunedFunction) -> Callable[[], object]:
    """One call as the user makes it: without gradients, or with the backward."""
    import torch

    if not task.gradients:

        def inference() -> object:
            with torch.no_grad():
                return call(*task.args, **task.kwargs)

        return inference
    return lambda: task.run(call, task.args, task.kwargs)


def decide(task: Task, chosen: str, reason: str, started: float, results: dict[str, VariantResult]) -> Decision:
    """The record of a decision, with the time since `started`."""
    import torch

    device = torch.cuda.get_device_name() if task.device == "cuda" else task.device
    seconds = perf_counter() - started
    order = sorted(results.values(), key=lambda item: float("inf") if item.median is None else item.median)
    return Decision(task.name, chosen, reason, device, str(torch.__version__), task.gradients, seconds, tuple(order))
