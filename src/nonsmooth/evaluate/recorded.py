"""The problem's functions as CUDA graphs: everything they launch in one launch.

Nothing is compiled, so a recording is ready in a fraction of a second. The point goes to the device, and what was computed
comes back, through pinned memory, with one synchronisation per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.compiled import Compiled, checked
from nonsmooth.evaluate.flat import FlatForm
from nonsmooth.vectors import kept

Vector = NDArray[np.float64]


def recorded(form: FlatForm, at: Vector, device: torch.device) -> Compiled:
    """The functions recorded at a point; raises where they cannot be (they wait for a value, or draw random numbers)."""
    x = torch.from_numpy(at.copy()).to(device)
    rows = _Replayed(form.rows, [x], form.tensors)
    penalty = None
    if form.penalty is not None:
        weights = torch.ones(1 + form.constraints, dtype=torch.float64, device=device)
        penalty = _Replayed(form.penalty, [x.clone(), weights], form.tensors)
    return Compiled(form, rows, penalty, len(at))


class _Replayed:
    """One function of host vectors, run by a recording that fetches its inputs and brings back its answer."""

    def __init__(self, function: Callable[..., Tensor], inputs: list[Tensor], tensors: tuple[Tensor, ...]) -> None:
        from compile_inspect.capture import torch_private
        from compile_inspect.variants.cuda_graph import Recorded
        from compile_inspect.variants.task import Task

        self._inputs = inputs
        hosts = [torch.empty(item.shape, dtype=item.dtype, pin_memory=True).copy_(item) for item in inputs]
        # Torch would share out the copying of long vectors among threads, and wait for them longer than it takes.
        self._hosts = [host.numpy() for host in hosts]
        answers: list[Tensor] = []

        def there_and_back(given: list[Any]) -> list[Tensor]:
            for item, host in zip(inputs, hosts, strict=True):
                item.copy_(host, non_blocking=True)
            output = function(*given)
            if not answers:
                answers.append(torch.empty(output.shape, dtype=torch.float64, pin_memory=True))
            answers[0].copy_(output, non_blocking=True)
            return [output]

        state = torch.cuda.get_rng_state()
        self._recording = Recorded(there_and_back, [*inputs, *tensors])  # it owns the memory that is used
        if not torch.equal(state, torch.cuda.get_rng_state()):
            raise ValueError("they draw random numbers")
        self._answer = answers[0].numpy()
        self._replay = torch_private.replay(self._recording.graph)
        self._wait = torch_private.waiter(inputs[0].device)
        self._check = checked(Task(function, (*inputs, *tensors), within=True), self._go)

    def __call__(self, *given: Tensor) -> Tensor:
        for host, value in zip(self._hosts, given, strict=False):
            host[...] = value.numpy()
        return self._check(*self._inputs, *given[len(self._inputs) :])

    def _go(self, _: list[Any]) -> list[Tensor]:
        self._replay()
        self._wait()
        return [torch.from_numpy(kept(self._answer))]
