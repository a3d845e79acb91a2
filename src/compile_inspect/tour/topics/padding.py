"""Sequences padded to equal lengths, so that one compilation and one CUDA graph serve all; part of the topic on CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.tour.calls import difference
from compile_inspect.tour.topics.call_outcomes import CountingBackend

if TYPE_CHECKING:
    from compile_inspect.tour.guide import Guide

LENGTHS = ((3, 5), (6, 2), (7, 4), (1, 8))
"""The lengths of the two sequences of each batch."""
MAX_LENGTH = 8
_WIDTH = 4
_CALLS_PER_BATCH = 3


@dataclass(frozen=True)
class PaddingRun:
    """Batches of sequences of different lengths: how they were padded, and what that cost."""

    padding: str
    lengths: tuple[int, ...]
    compilations: int
    recordings: int | None = None
    """CUDA graphs recorded in mode reduce-overhead; None where there is no GPU."""
    difference: float = 0.0
    """The largest difference from processing the sequences one by one."""


def pooled(tokens: Any, mask: Any) -> Any:
    """The mean of the unmasked tokens."""
    weights = mask.unsqueeze(-1)
    return (tokens.tanh() * weights).sum(1) / weights.sum(1)


def batch_of(sequences: list[Any], length: int | None) -> tuple[Any, Any]:
    """Sequences as one tensor with a mask: padded to the longest of them, or to a fixed length."""
    import torch

    tokens = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    ones = [torch.ones(len(sequence), device=sequence.device) for sequence in sequences]
    mask = torch.nn.utils.rnn.pad_sequence(ones, batch_first=True)
    missing_length = 0 if length is None else length - tokens.shape[1]
    return torch.nn.functional.pad(tokens, (0, 0, 0, missing_length)), torch.nn.functional.pad(mask, (0, missing_length))


def run_padded(padding: str, dynamic: bool | None, length: int | None, *, guide: Guide) -> PaddingRun:
    """Compile a function for batches padded in one way; record CUDA graphs where there is a GPU."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.silence import silence

    device = guide.machine.device
    generator = torch.Generator().manual_seed(0)
    batches = [[torch.randn(n, _WIDTH, generator=generator).to(device) for n in lengths] for lengths in LENGTHS]
    inputs = [batch_of(batch, length) for batch in batches]
    torch_private.forget_compiled_code()
    backend = CountingBackend()
    compiled: Callable[..., Any] = torch.compile(pooled, backend=backend, dynamic=dynamic)
    largest_difference = 0.0
    with silence(), torch.no_grad():
        for batch, (tokens, mask) in zip(batches, inputs, strict=True):
            unpadded = torch.stack([sequence.tanh().mean(0) for sequence in batch])
            largest_difference = max(largest_difference, difference(compiled(tokens, mask), unpadded))
    recordings = _count_recordings(inputs, dynamic) if device == "cuda" and guide.machine.inductor else None
    torch_private.forget_compiled_code()
    return PaddingRun(padding, tuple(tokens.shape[1] for tokens, _ in inputs), backend.graphs, recordings, largest_difference)


def _count_recordings(inputs: list[tuple[Any, Any]], dynamic: bool | None) -> int:
    """How many CUDA graphs mode reduce-overhead records for some inputs, each passed a few times."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence

    torch_private.forget_compiled_code()
    compiled: Callable[..., Any] = torch.compile(pooled, mode="reduce-overhead", dynamic=dynamic)
    with silence(), torch_private.suppressed_compiler_output(), torch.no_grad(), record() as recording:
        for tokens, mask in inputs:
            for _ in range(_CALLS_PER_BATCH):
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
                compiled(tokens, mask)
    events = recording.inspection.cuda_graphs
    return sum(event.times for event in events if event.outcome is CudaGraphOutcome.RECORDED)
