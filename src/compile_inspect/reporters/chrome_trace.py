"""Compile time as a trace for Perfetto (https://ui.perfetto.dev) and chrome://tracing.

The format is Chrome's trace event format: complete events ("ph": "X") with times in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from compile_inspect.records import Inspection, Phase
from compile_inspect.serialization import to_data

Event = dict[str, Any]


def chrome_trace(inspections: Sequence[Inspection]) -> dict[str, Any]:
    """Every timed phase of every process, on one clock that starts with the earliest phase.

    >>> from compile_inspect.records import Process
    >>> inspection = Inspection(process=Process(pid=7), phases=(Phase("0/0", "dynamo", 5.0, 0.25, thread=8),))
    >>> chrome_trace([inspection])["traceEvents"][-1]["dur"]
    250000.0
    """
    origin = min((phase.start for inspection in inspections for phase in _timed(inspection)), default=0.0)
    events: list[Event] = []
    used_pids: set[int] = set()
    for inspection in inspections:
        # Processes on different machines can share a pid and would be drawn as one track.
        pid = inspection.process.pid
        while pid in used_pids:
            pid += 1
        used_pids.add(pid)
        events.extend(_names(inspection, pid))
        events.extend(_complete_event(phase, pid, origin) for phase in _timed(inspection))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _timed(inspection: Inspection) -> Iterator[Phase]:
    # A NaN would make the whole file invalid JSON.
    return (phase for phase in inspection.phases if math.isfinite(phase.start) and math.isfinite(phase.seconds))


def _thread(phase: Phase, pid: int) -> int:
    # Perfetto keeps thread 0 for the kernel's idle task. On Linux the first thread has the id of its process.
    return phase.thread or pid or 1


def _names(inspection: Inspection, pid: int) -> Iterator[Event]:
    process = inspection.process
    name = f"{process.label} {' '.join(process.command)}".strip()
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    if process.rank is not None:
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": process.rank}}
    threads = dict.fromkeys(_thread(phase, pid) for phase in _timed(inspection))
    for position, thread in enumerate(threads):
        label = "compiling" if position == 0 else f"compiling, thread {position + 1}"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": label}}


def _complete_event(phase: Phase, pid: int, origin: float) -> Event:
    arguments: Event = {
        str(key): value if not isinstance(value, float) or math.isfinite(value) else str(value)
        for key, value in to_data(phase.details).items()
    }
    if phase.compilation is not None:
        arguments["compilation"] = phase.compilation
    return {
        "ph": "X",
        "name": phase.name,
        "cat": "torch.compile",
        "ts": round((phase.start - origin) * 1e6, 3),
        "dur": round(phase.seconds * 1e6, 3),
        "pid": pid,
        "tid": _thread(phase, pid),
        "args": arguments,
    }
