"""Page faults: memory that calls fetch from the system.

A C library gives large blocks back to the system when they are freed, or keeps them, depending on what else lies in its heap.
Where it gives them back, every call pays for its temporaries page by page, which can be most of its time, and that comes and
goes while nothing in the program changes.
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

FEW_PAGES = 16
"""Fewer than these in a call are no temporaries of a tensor program."""
_PROBE = 4 * 2**20
_ATTEMPTS = 3


def page_faults() -> int:
    """Pages that this process has got so far without reading them from a disk; 0 where the system does not tell."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def seconds_for(faults: float) -> float:
    """What so many page faults take, at the least: torch's threads have theirs side by side.

    >>> seconds_for(0)
    0.0
    """
    torch = sys.modules.get("torch")
    return faults * seconds_per_fault() / (1 if torch is None else torch.get_num_threads())


@cache
def seconds_per_fault() -> float:
    """What a page costs here, its zeros included: measured once, on fresh memory; 0 where nothing can be learnt.

    >>> 0 <= seconds_per_fault() < 1e-2
    True
    """
    found: list[float] = []
    if resource is None:
        return 0.0
    for _ in range(_ATTEMPTS):
        with mmap.mmap(-1, _PROBE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:  # as that of the C library
            place = ctypes.c_char.from_buffer(memory)
            try:
                faults, started = page_faults(), perf_counter()
                ctypes.memset(ctypes.addressof(place), 1, _PROBE)
                taken, faults = perf_counter() - started, page_faults() - faults
                started = perf_counter()
                ctypes.memset(ctypes.addressof(place), 2, _PROBE)
                writing = perf_counter() - started
            finally:
                del place  # the memory cannot be given back while something points to it
        if faults:
            found.append(max(0.0, taken - writing) / faults)
    return min(found, default=0.0)
