"""Calls of models: their names, how long a call takes, and how much two results differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect import torch_private
from compile_inspect.tour.intervals import CallTime

if TYPE_CHECKING:
    from compile_inspect.target import Target

_WARM_UP_CALLS = 2
_MIN_CALLS = 3
_MAX_CALLS = 30
_MAX_SECONDS = 2.0


def model_name(target: Target) -> str:
    """The name of a target's class or function."""
    function = target.function
    name = getattr(function, "__name__", "") or type(function).__name__
    return str(name)


def batch_of(target: Target) -> int:
    """The size of the first dimension of the first tensor among the inputs; 0 where there is none."""
    leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
    return next((int(leaf.shape[0]) for leaf in leaves if torch_private.is_tensor(leaf) and leaf.dim()), 0)


def synchronize(device: str) -> None:
    """Wait until the device has finished its work."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def median_seconds(call: Callable[[], object], device: str = "cpu") -> float:
    """The median time of some calls after a warm-up."""
    return call_time(call, device).median


def call_time(call: Callable[[], object], device: str = "cpu") -> CallTime:
    """The median time of some calls with its interval, after a warm-up."""
    from compile_inspect.timing.noise import summarize

    for _ in range(_WARM_UP_CALLS):
        call()
    samples: list[float] = []
    synchronize(device)
    while len(samples) < _MAX_CALLS and (len(samples) < _MIN_CALLS or sum(samples) < _MAX_SECONDS):
        start = perf_counter()
        call()
        synchronize(device)
        samples.append(perf_counter() - start)
    summary = summarize(samples)
    return CallTime(summary.median, summary.low, summary.high)


def result_of(target: Target, function: Callable[..., Any] | None = None, *, seed: int = 0) -> Any:
    """The result of the target's function, or of another one in its place, for copies of the inputs and a given seed.

    Whatever the call changes is restored afterward: parameters, buffers, inputs, generators.
    """
    from compile_inspect.agreement.api import scratch_task
    from compile_inspect.variants import Task

    callee = target.function if function is None else function
    with scratch_task(Task.of(target), seed) as scratch:
        return callee(*scratch.args, **scratch.kwargs)


def is_deterministic(target: Target) -> bool:
    """Whether the function returns the same for the same inputs: one that draws random numbers cannot be compared.

    >>> import torch
    >>> from compile_inspect.target import Target
    >>> is_deterministic(Target(torch.sin, (torch.ones(2),)))
    True
    >>> is_deterministic(Target(torch.rand_like, (torch.ones(2),)))
    False
    """
    return difference(result_of(target, seed=0), result_of(target, seed=1)) == 0


def difference(one: Any, other: Any) -> float:
    """The largest difference between any two entries of two results; infinite where their structures differ.

    An entry that is NaN or infinite in only one result counts as infinitely different. Of objects in a result, such as
    caches, the tensors inside are compared.

    >>> import torch
    >>> difference((torch.ones(2), 3), (torch.tensor([1.0, 1.5]), 3)), difference((torch.ones(2), 3), (torch.ones(2), 4))
    (0.5, inf)
    >>> difference(torch.tensor([1.0, torch.nan]), torch.tensor([1.0, 2.0]))
    inf
    """
    from compile_inspect.agreement.run_outcome import named_leaves

    left, right = named_leaves(one), named_leaves(other)
    if [name for name, _ in left] != [name for name, _ in right]:
        return math.inf
    pairs = zip(left, right, strict=True)
    return max((_leaf_difference(first, second) for (_, first), (_, second) in pairs), default=0.0)


def _leaf_difference(first: Any, second: Any) -> float:
    import torch

    if not (torch_private.is_tensor(first) and torch_private.is_tensor(second)):
        plain = isinstance(first, int | float | complex | str | None)
        return math.inf if type(first) is not type(second) or (plain and first != second and first == first) else 0.0
    if first.shape != second.shape or first.dtype != second.dtype:
        return math.inf
    if not first.numel():
        return 0.0
    exact = torch.complex128 if first.is_complex() else torch.float64
    one, other = first.detach().to("cpu", exact), second.detach().to("cpu", exact)
    if not torch.equal(one.isfinite(), other.isfinite()):
        return math.inf
    finite = one.isfinite()
    return float((one[finite] - other[finite]).abs().max()) if bool(finite.any()) else 0.0
