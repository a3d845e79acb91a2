"""Page faults: memory that calls request from the system.

When large blocks are freed, the C library either returns them to the system or keeps them, depending on the other contents of
its heap. If it returns them, every call pays for its temporaries page by page. This can be most of the call's time, and it can
start or stop without any change in the program.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from time import perf_counter

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MAX_ORDINARY_FAULTS = 16
"""A call with at most this many page faults does not page in temporaries of a tensor program."""
_PROBE_BYTES = 4 * 2**20
_ATTEMPTS = 3


def page_faults() -> int:
    """The minor page faults of this process so far; 0 if the system does not report them."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def seconds_for(faults: float) -> float:
    """A lower bound of the time that page faults take: torch's threads handle theirs in parallel.

    >>> seconds_for(0)
    0.0
    """
    torch = sys.modules.get("torch")
    return faults * seconds_per_fault() / (1 if torch is None else torch.get_num_threads())


@cache
def seconds_per_fault() -> float:
    """The time per page fault on this machine, including clearing the page, measured once; 0 if it cannot be measured.

    >>> 0 <= seconds_per_fault() < 1e-2
    True
    """
    costs: list[float] = []
    if resource is None:
        return 0.0
    for _ in range(_ATTEMPTS):
        with mmap.mmap(-1, _PROBE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:  # like that of the C library
            start = ctypes.c_char.from_buffer(memory)
            try:
                faults, started = page_faults(), perf_counter()
                ctypes.memset(ctypes.addressof(start), 1, _PROBE_BYTES)
                elapsed, faults = perf_counter() - started, page_faults() - faults
                started = perf_counter()
                ctypes.memset(ctypes.addressof(start), 2, _PROBE_BYTES)
                writing = perf_counter() - started
            finally:
                del start  # the memory cannot be released while something points to it
        if faults:
            costs.append(max(0.0, elapsed - writing) / faults)
    return min(costs, default=0.0)
