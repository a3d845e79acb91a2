"""Samples of how long calls take: raw, interleaved, in changing order.

samples = interleave({"eager": eager, "compiled": compiled}, device="cpu", seconds=1.0)
summarize(samples["eager"]).median
faster(samples["compiled"], samples["eager"])
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from random import Random
from time import perf_counter

from compile_inspect.timing.noise import faster, summarize
from compile_inspect.timing.page_faults import FEW_PAGES, page_faults, seconds_for

__all__ = ["Rounds", "faster", "interleave", "sample_rounds", "summarize"]

Call = Callable[[], object]
Clock = Callable[[], float]

LEAST_ROUNDS = 5
# A clock of some 50 ns and its own cost are a thousandth of this.
_SHORT = 50e-6
_BATCH_SECONDS = 300e-6
# The others leave caches of the processor cold for it. Calls this short are made once before they are timed: what is
# measured is a call among its like.
_COLD = 5e-3
_MOST_IN_BATCH = 10_000
# A sample of picoseconds is noise; fewer digits keep captures small.
_DIGITS = 12


@dataclass
class Rounds:
    """Raw seconds per call of each, one for every round; `device` holds those between device events, on CUDA only.

    `faults` are the pages that a call fetched from the system, on average.
    """

    wall: dict[str, tuple[float, ...]]
    device: dict[str, tuple[float, ...]] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    faults: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    """Whether Ctrl-C ended them early."""

    def passing_gain(self, slow: str, fast: str) -> float:
        """Seconds by which a call is slower than another for the pages it fetches: the allocator may keep them one day."""
        more = self.faults.get(slow, 0.0) - self.faults.get(fast, 0.0)
        return seconds_for(more) if more > FEW_PAGES else 0.0


def interleave(
    calls: Mapping[str, Call],
    *,
    device: str,
    seconds: float,
    rounds: int | None = None,
    on_round: Callable[[int], object] | None = None,
    clock: Clock = perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Raw seconds per call of each, sampled in interleaved rounds.

    Every round calls each once, in another order, until `seconds` are used (at least 5 rounds), or for exactly `rounds`
    rounds. Calls under 50 µs are timed in batches; before every sample of calls under 5 ms one is made that does not count.
    On CUDA every call is followed by a synchronization, which counts.
    """
    return sample_rounds(calls, device=device, seconds=seconds, rounds=rounds, on_round=on_round, clock=clock).wall


def sample_rounds(
    calls: Mapping[str, Call],
    *,
    device: str,
    seconds: float,
    rounds: int | None = None,
    on_round: Callable[[int], object] | None = None,
    clock: Clock = perf_counter,
    keep_if_interrupted: bool = False,
) -> Rounds:
    """As `interleave`, with device times, batch sizes and page faults.

    With `keep_if_interrupted`, Ctrl-C after the first round ends the sampling, and the whole rounds until then are kept.
    """
    if not calls:
        return Rounds({})
    on_cuda = device.startswith("cuda")
    units = {name: _synchronized(call) if on_cuda else call for name, call in calls.items()}
    batches = {name: _batch_size(call, clock) for name, call in units.items()}
    warm = {name for name, call in units.items() if _one_sample(call, 1, clock) < _COLD}
    wall: dict[str, list[float]] = {name: [] for name in calls}
    events: dict[str, list[float]] = {name: [] for name in calls}
    faults = dict.fromkeys(calls, 0)
    counted = page_faults if not on_cuda else lambda: 0  # there the memory of tensors is the device's
    order, shuffle = list(calls), Random(0).shuffle
    done, interrupted = 0, False
    with without_garbage_collection():
        started = clock()  # after a collection, which can take longer than all rounds
        try:
            while done < (LEAST_ROUNDS if rounds is None else rounds) or (rounds is None and clock() - started < seconds):
                shuffle(order)
                for name in order:
                    if name in warm:
                        units[name]()
                    before = counted()
                    wall[name].append(round(_one_sample(units[name], batches[name], clock), _DIGITS))
                    faults[name] += counted() - before
                    if on_cuda:
                        events[name].append(_between_events(calls[name]))
                done += 1
                if on_round is not None:
                    on_round(done)
        except KeyboardInterrupt:
            if not keep_if_interrupted or not done:
                raise
            interrupted = True
    return Rounds(
        {name: tuple(found[:done]) for name, found in wall.items()},
        {name: tuple(found[:done]) for name, found in events.items() if found},
        batches,
        {name: number / (max(1, done) * batches[name]) for name, number in faults.items()},
        interrupted,
    )


def _one_sample(call: Call, batch: int, clock: Clock) -> float:
    if batch == 1:
        started = clock()
        call()
        return clock() - started
    numbers = repeat(None, batch)
    started = clock()
    for _ in numbers:
        call()
    return (clock() - started) / batch


def _batch_size(call: Call, clock: Clock) -> int:
    """How many calls make a sample: one, or for short calls as many as take 100 µs."""
    call()  # the very first touches memory and caches
    batch = 1
    while batch < _MOST_IN_BATCH:
        # The least of three: one interruption must not make a short call look long.
        each = min(_one_sample(call, batch, clock) for _ in range(3))
        if each >= _SHORT:
            return 1
        if each * batch >= _SHORT:
            return min(_MOST_IN_BATCH, max(1, math.ceil(_BATCH_SECONDS / each)))
        batch *= 4
    return _MOST_IN_BATCH


def _synchronized(call: Call) -> Call:
    """The call and the wait for what it launched: what a caller who needs the result waits for."""
    import torch

    synchronize = torch.cuda.synchronize
    synchronize()

    def unit() -> None:
        call()
        synchronize()

    return unit


def _between_events(call: Call) -> float:
    """Seconds that the device's stream takes from before to after one call.

    It is a call of its own: recording events inside a sample would lengthen it.
    """
    import torch

    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    before.record()
    call()
    after.record()
    after.synchronize()
    return round(float(before.elapsed_time(after)) / 1e3, _DIGITS)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """No collection of Python's garbage meanwhile: one takes as long as thousands of short calls."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
