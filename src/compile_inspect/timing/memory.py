"""How much memory one call needs at its peak, beyond what was held before it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compile_inspect.records.timing import Memory
from compile_inspect.variants.base import one_line

ON_CUDA = (
    "torch's CUDA allocator: its highest mark during one call, less what was allocated before; "
    "what a CUDA graph holds all the time is not in it"
)
ON_CPU = "torch's profiler: every allocation of torch's CPU allocator during one call; scratch space of libraries is not seen"


def peak_memory(call: Callable[[], object], *, device: str) -> Memory:
    """The peak of one call, whose result is kept until the call has ended; None with the reason where it is not known."""
    try:
        if device == "cuda":
            return Memory(_on_cuda(call), ON_CUDA)
        if device == "cpu":
            return Memory(_on_cpu(call), ON_CPU)
    except Exception as error:  # a profiler that fails must not take the samples with it
        return Memory(None, f"not known: {one_line(error)}")
    return Memory(None, f"not known: nothing tells the memory of a call on {device}")


def _on_cuda(call: Callable[[], object]) -> int:
    import torch

    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    torch.cuda.synchronize()
    del result
    return max(0, torch.cuda.max_memory_allocated() - before)


def _on_cpu(call: Callable[[], object]) -> int:
    import torch

    with _silenced(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = call()
    del result
    with tempfile.TemporaryDirectory(prefix="compile-inspect-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return peak_of(events)


def peak_of(events: Iterable[Any]) -> int:
    """The highest sum of the allocations in a profiler's trace, as they follow one another in time.

    >>> def event(time, size):
    ...     return {"name": "[memory]", "ts": time, "args": {"Bytes": size, "Device Type": 0}}
    >>> peak_of([event(3, -8), event(1, 8), event(2, 4), {"name": "aten::add"}])
    12
    """
    found = [event for event in events if event.get("name") == "[memory]" and event["args"].get("Device Type", 0) == 0]
    held = peak = 0
    for event in sorted(found, key=lambda item: float(item["ts"])):
        held += int(event["args"]["Bytes"])
        peak = max(peak, held)
    return peak


@contextmanager
def _silenced() -> Iterator[None]:
    """The profiler's library announces its start and its end on standard error, past Python."""
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (OSError, ValueError, AttributeError):  # there is no standard error to write to
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
