"""The peak memory of one call, beyond what was allocated before it."""

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

CUDA_METHOD = (
    "torch's CUDA allocator: its peak during one call, minus what was allocated before; "
    "memory that a CUDA graph holds permanently is not included"
)
CPU_METHOD = "torch's profiler: all allocations of torch's CPU allocator during one call, without scratch space of libraries"


def peak_memory(call: Callable[[], object], *, device: str) -> Memory:
    """The peak of one call, including its result; None with the reason if it is not known."""
    try:
        if device == "cuda":
            return Memory(_on_cuda(call), CUDA_METHOD)
        if device == "cpu":
            return Memory(_on_cpu(call), CPU_METHOD)
    except Exception as error:  # a failing profiler must not lose the samples
        return Memory(None, f"not known: {one_line(error)}")
    return Memory(None, f"not known: the memory of a call on {device} cannot be measured")


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

    activities = [torch.profiler.ProfilerActivity.CPU]
    with _silent_stderr(), torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        result = call()
    del result
    with tempfile.TemporaryDirectory(prefix="compile-inspect-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return peak_of_trace(events)


def peak_of_trace(events: Iterable[Any]) -> int:
    """The largest running sum of the allocations in a profiler's trace, in order of time.

    >>> def event(time, size):
    ...     return {"name": "[memory]", "ts": time, "args": {"Bytes": size, "Device Type": 0}}
    >>> peak_of_trace([event(3, -8), event(1, 8), event(2, 4), {"name": "aten::add"}])
    12
    """
    allocations = [event for event in events if event.get("name") == "[memory]" and event["args"].get("Device Type", 0) == 0]
    allocated = peak = 0
    for event in sorted(allocations, key=lambda item: float(item["ts"])):
        allocated += int(event["args"]["Bytes"])
        peak = max(peak, allocated)
    return peak


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Silence standard error: the profiler's library writes to it directly, bypassing Python."""
    try:
        sys.stderr.flush()
        stderr_copy = os.dup(2)
    except (OSError, ValueError, AttributeError):  # there is no standard error
        yield
        return
    try:
        with Path(os.devnull).open("wb") as null:
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
