"""Take raw samples of the duration of calls, interleaved and in changing order.

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
from compile_inspect.timing.page_faults import MAX_ORDINARY_FAULTS, page_faults, seconds_for

__all__ = ["Rounds", "faster", "interleave", "sample_rounds", "summarize"]

Call = Callable[[], object]
Clock = Callable[[], float]

MIN_ROUNDS = 5
# The resolution and the cost of the clock, about 50 ns, are a thousandth of this.
_MIN_SAMPLE_SECONDS = 50e-6
_BATCH_SECONDS = 300e-6
# Other variants evict a call's data from the processor's caches. Calls shorter than this are made once before they are timed,
# so that each sample is a call that follows another call of the same variant.
_MAX_PRIMED_SECONDS = 5e-3
_MAX_BATCH_SIZE = 10_000
# Picoseconds are noise; fewer digits keep captures small.
_DIGITS = 12


@dataclass
class Rounds:
    """Raw seconds per call of each variant, one per round. `device` has the seconds between device events, on CUDA only.

    `faults` are the average page faults per call, and `batches` the number of calls per sample.
    """

    wall: dict[str, tuple[float, ...]]
    device: dict[str, tuple[float, ...]] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    faults: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    """Whether Ctrl-C ended the sampling early."""

    def temporary_gain(self, slow: str, fast: str) -> float:
        """Seconds per call that one call loses to another through page faults, which may disappear at any time."""
        additional = self.faults.get(slow, 0.0) - self.faults.get(fast, 0.0)
        return seconds_for(additional) if additional > MAX_ORDINARY_FAULTS else 0.0


def interleave(
    calls: Mapping[str, Call],
    *,
    device: str,
    seconds: float,
    rounds: int | None = None,
    on_round: Callable[[int], object] | None = None,
    clock: Clock = perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Raw seconds per call of each variant, sampled in interleaved rounds.

    Each round calls every variant once, in a different order, until `seconds` have elapsed (at least 5 rounds), or for exactly
    `rounds` rounds. Calls under 50 µs are timed in batches. Each sample of a call under 5 ms follows an untimed call of the
    same variant. On CUDA, each call includes a synchronization.
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
    """Like `interleave`, with device times, batch sizes and page faults.

    With `keep_if_interrupted`, Ctrl-C after the first round ends the sampling, and the complete rounds so far are returned.
    """
    if not calls:
        return Rounds({})
    on_cuda = device.startswith("cuda")
    timed_calls = {name: _synchronized(call) if on_cuda else call for name, call in calls.items()}
    batches = {name: _batch_size(call, clock) for name, call in timed_calls.items()}
    primed = {name for name, call in timed_calls.items() if _one_sample(call, 1, clock) < _MAX_PRIMED_SECONDS}
    wall: dict[str, list[float]] = {name: [] for name in calls}
    events: dict[str, list[float]] = {name: [] for name in calls}
    faults = dict.fromkeys(calls, 0)
    count_faults = page_faults if not on_cuda else lambda: 0  # on CUDA, tensors are in the device's memory
    order, shuffle = list(calls), Random(0).shuffle
    round_count, interrupted = 0, False
    with without_garbage_collection():
        started = clock()  # after the garbage collection, which can take longer than all rounds
        try:
            while round_count < (MIN_ROUNDS if rounds is None else rounds) or (rounds is None and clock() - started < seconds):
                shuffle(order)
                for name in order:
                    if name in primed:
                        timed_calls[name]()
                    before = count_faults()
                    wall[name].append(round(_one_sample(timed_calls[name], batches[name], clock), _DIGITS))
                    faults[name] += count_faults() - before
                    if on_cuda:
                        events[name].append(_between_events(calls[name]))
                round_count += 1
                if on_round is not None:
                    on_round(round_count)
        except KeyboardInterrupt:
            if not keep_if_interrupted or not round_count:
                raise
            interrupted = True
    return Rounds(
        {name: tuple(samples[:round_count]) for name, samples in wall.items()},
        {name: tuple(samples[:round_count]) for name, samples in events.items() if samples},
        batches,
        {name: count / (max(1, round_count) * batches[name]) for name, count in faults.items()},
        interrupted,
    )


def _one_sample(call: Call, batch: int, clock: Clock) -> float:
    if batch == 1:
        started = clock()
        call()
        return clock() - started
    repetitions = repeat(None, batch)
    started = clock()
    for _ in repetitions:
        call()
    return (clock() - started) / batch


def _batch_size(call: Call, clock: Clock) -> int:
    """The number of calls per sample: one, or for short calls as many as take about 300 µs."""
    call()  # the first call touches memory and caches
    batch = 1
    while batch < _MAX_BATCH_SIZE:
        # The minimum of three: one interruption must not make a short call look long.
        each = min(_one_sample(call, batch, clock) for _ in range(3))
        if each >= _MIN_SAMPLE_SECONDS:
            return 1
        if each * batch >= _MIN_SAMPLE_SECONDS:
            return min(_MAX_BATCH_SIZE, max(1, math.ceil(_BATCH_SECONDS / each)))
        batch *= 4
    return _MAX_BATCH_SIZE


def _synchronized(call: Call) -> Call:
    """A call followed by a synchronization: the time until a caller can use the result."""
    import torch

    synchronize = torch.cuda.synchronize
    synchronize()

    def synchronized() -> None:
        call()
        synchronize()

    return synchronized


def _between_events(call: Call) -> float:
    """Seconds that one call takes on the device's stream.

    This is a separate call, because recording events inside a sample would lengthen it.
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
    """Disable Python's garbage collection, because one collection takes as long as thousands of short calls."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
