"""The problem's functions as CUDA graphs: one launch for all of their kernels.

Nothing is compiled, so a graph is ready in a fraction of a second. The point goes to the device and the results come back
through pinned memory, with one synchronization per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.arrays.memory import long_lived_copy
from nonsmooth.compile.compiled import CapturedFunctions, Compiled, GuardFailed
from nonsmooth.compile.flat import FlatForm

Vector = NDArray[np.float64]


def record_cuda_graphs(form: FlatForm, at: Vector, device: torch.device) -> Compiled:
    """Record the functions at a point; raises if that is impossible (they synchronize, or draw random numbers)."""
    captured = CapturedFunctions(form, at, device)
    x = torch.from_numpy(at.copy()).to(device)
    rows = _GraphReplay(captured, captured.rows, [x])
    penalty = None
    if form.has_penalty:
        weights = torch.ones(1 + form.constraints, dtype=torch.float64, device=device)
        penalty = _GraphReplay(captured, captured.penalty, [x.clone(), weights])
    return Compiled(form, rows, penalty, len(at))


class _GraphReplay:
    """One function of host vectors, run by a CUDA graph that includes the transfers of its inputs and its output."""

    def __init__(self, captured: CapturedFunctions, function: Callable[..., list[Tensor]], inputs: list[Tensor]) -> None:
        from compile_inspect.packages import GraphRecording, replay_function, stream_waiter

        self._captured, self._inputs = captured, inputs
        others = captured.other_inputs(captured.form.tensors)
        hosts = [torch.empty(item.shape, dtype=item.dtype, pin_memory=True).copy_(item) for item in inputs]
        # NumPy copies: torch would split long copies among threads, and waiting for these takes longer than the copy.
        self._hosts = [host.numpy() for host in hosts]
        answers: list[Tensor] = []

        def round_trip(arguments: list[Any]) -> list[Tensor]:
            for item, host in zip(inputs, hosts, strict=True):
                item.copy_(host, non_blocking=True)
            (output,) = function(*arguments)
            if not answers:
                answers.append(torch.empty(output.shape, dtype=torch.float64, pin_memory=True))
            answers[0].copy_(output, non_blocking=True)
            return [output]

        state = torch.cuda.get_rng_state()
        self._recording = GraphRecording(round_trip, [*inputs, *others])  # owns the memory of the graph
        if not torch.equal(state, torch.cuda.get_rng_state()):
            raise ValueError("they draw random numbers")
        self._answer = answers[0].numpy()
        self._replay = replay_function(self._recording.graph)
        self._wait = stream_waiter(inputs[0].device)
        self._pointers = [tensor.data_ptr for tensor in others]
        self._addresses = [tensor.data_ptr() for tensor in others]

    def __call__(self, *arguments: Tensor) -> Tensor:
        for host, value in zip(self._hosts, arguments, strict=False):
            host[...] = value.numpy()
        if [pointer() for pointer in self._pointers] != self._addresses:
            raise GuardFailed("a tensor that they read has moved in memory")
        self._replay()
        self._captured.check(self._captured.form.tensors)  # while the device is busy
        self._wait()
        return torch.from_numpy(long_lived_copy(self._answer))
