"""Calling models: their names, how long a call takes, how far two results are apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect import torch_private
from compile_inspect.tour.intervals import CallTime

if TYPE_CHECKING:
    from compile_inspect.target import Target

_CALLS = 30
_MOST_SECONDS = 2.0


def model_name(target: Target) -> str:
    """What a target is called: its class or function."""
    function = target.function
    name = getattr(function, "__name__", "") or type(function).__name__
    return str(name)


def batch_of(target: Target) -> int:
    """The size of the first dimension of the first tensor among the inputs; 0 where there is none."""
    leaves, _ = torch_private.flatten((target.args, dict(target.kwargs)))
    return next((int(leaf.shape[0]) for leaf in leaves if torch_private.is_tensor(leaf) and leaf.dim()), 0)


def wait(device: str) -> None:
    """Until the device has done what it was given."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def median_seconds(call: Callable[[], object], device: str = "cpu") -> float:
    """The median of some calls, after two that do not count."""
    return call_time(call, device).median


def call_time(call: Callable[[], object], device: str = "cpu") -> CallTime:
    """The median of some calls with its interval, after two that do not count."""
    from compile_inspect.timing.noise import summarize

    for _ in range(2):
        call()
    taken: list[float] = []
    wait(device)
    while len(taken) < _CALLS and (len(taken) < 3 or sum(taken) < _MOST_SECONDS):
        started = perf_counter()
        call()
        wait(device)
        taken.append(perf_counter() - started)
    found = summarize(taken)
    return CallTime(found.median, found.low, found.high)


def result_of(target: Target, function: Callable[..., Any] | None = None, *, seed: int = 0) -> Any:
    """What the target's function, or another one in its place, gives for copies of the inputs, from a given seed.

    What it changes is put back afterwards: parameters, buffers, inputs, generators.
    """
    from compile_inspect.agreement.api import scratch_task
    from compile_inspect.variants import Task

    called = target.function if function is None else function
    with scratch_task(Task.of(target), seed) as scratch:
        return called(*scratch.args, **scratch.kwargs)


def is_steady(target: Target) -> bool:
    """Whether the function gives the same for the same inputs: one that draws random numbers cannot be compared.

    >>> import torch
    >>> from compile_inspect.target import Target
    >>> is_steady(Target(torch.sin, (torch.ones(2),))), is_steady(Target(torch.rand_like, (torch.ones(2),)))
    (True, False)
    """
    return difference(result_of(target, seed=0), result_of(target, seed=1)) == 0


def difference(one: Any, other: Any) -> float:
    """The largest difference between any two entries of two results; infinite where their forms differ.

    Entries that are no number in one result only count as infinitely far apart. Of objects that results may hold, such
    as caches, the tensors inside are compared.

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
    return max((_apart(first, second) for (_, first), (_, second) in zip(left, right, strict=True)), default=0.0)


def _apart(first: Any, second: Any) -> float:
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
