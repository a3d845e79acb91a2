"""The problem's functions as CUDA graphs: everything they launch in one launch.

Nothing is compiled, so a recording is ready in a fraction of a second. The point goes to the device, and what was computed
comes back, through pinned memory, with one synchronization per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.arrays.memory import kept
from nonsmooth.compile.compiled import Captured, Changed, Compiled
from nonsmooth.compile.flat import FlatForm

Vector = NDArray[np.float64]


def recorded(form: FlatForm, at: Vector, device: torch.device) -> Compiled:
    """The functions recorded at a point; raises where they cannot be (they wait for a value, or draw random numbers)."""
    captured = Captured(form, at, device)
    x = torch.from_numpy(at.copy()).to(device)
    rows = _Replayed(captured, captured.rows, [x])
    penalty = None
    if form.has_penalty:
        weights = torch.ones(1 + form.constraints, dtype=torch.float64, device=device)
        penalty = _Replayed(captured, captured.penalty, [x.clone(), weights])
    return Compiled(form, rows, penalty, len(at))


class _Replayed:
    """One function of host vectors, run by a recording that fetches its inputs and brings back its answer."""

    def __init__(self, captured: Captured, function: Callable[..., list[Tensor]], inputs: list[Tensor]) -> None:
        from compile_inspect.packages import GraphRecording, replay_function, stream_waiter

        self._captured, self._inputs = captured, inputs
        others = captured.others(captured.form.tensors)
        hosts = [torch.empty(item.shape, dtype=item.dtype, pin_memory=True).copy_(item) for item in inputs]
        # Torch would share out the copying of long vectors among threads, and wait for them longer than it takes.
        self._hosts = [host.numpy() for host in hosts]
        answers: list[Tensor] = []

        def there_and_back(given: list[Any]) -> list[Tensor]:
            for item, host in zip(inputs, hosts, strict=True):
                item.copy_(host, non_blocking=True)
            (output,) = function(*given)
            if not answers:
                answers.append(torch.empty(output.shape, dtype=torch.float64, pin_memory=True))
            answers[0].copy_(output, non_blocking=True)
            return [output]

        state = torch.cuda.get_rng_state()
        self._recording = GraphRecording(there_and_back, [*inputs, *others])  # it owns the memory that is used
        if not torch.equal(state, torch.cuda.get_rng_state()):
            raise ValueError("they draw random numbers")
        self._answer = answers[0].numpy()
        self._replay = replay_function(self._recording.graph)
        self._wait = stream_waiter(inputs[0].device)
        self._pointers = [tensor.data_ptr for tensor in others]
        self._addresses = [tensor.data_ptr() for tensor in others]

    def __call__(self, *given: Tensor) -> Tensor:
        for host, value in zip(self._hosts, given, strict=False):
            host[...] = value.numpy()
        if [pointer() for pointer in self._pointers] != self._addresses:
            raise Changed("a tensor that they read lies elsewhere in memory")
        self._replay()
        self._captured.check(self._captured.form.tensors)  # while the device works
        self._wait()
        return torch.from_numpy(kept(self._answer))
