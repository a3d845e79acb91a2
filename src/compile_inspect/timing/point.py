"""All variants at one size: built, warmed up, sampled in turn with the others, then built cold in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from compile_inspect.capture.counting import compilation_counts
from compile_inspect.records.timing import Build, CacheUse, Doubt, Measurement
from compile_inspect.timing.cold import FreshBuilds, Place, build_afresh
from compile_inspect.timing.conditions import Conditions, doubts_about, doubts_between
from compile_inspect.timing.memory import peak_memory
from compile_inspect.timing.noise import ratio, summarize
from compile_inspect.timing.payback import predict_payback
from compile_inspect.timing.sampling import Rounds, sample_rounds
from compile_inspect.timing.warm_up import WarmUp, warm_up
from compile_inspect.variants import Prepared, RefusalError, Task, Variant
from compile_inspect.variants.base import one_line

EAGER = "eager"
NO_COLD_BUILD = "cold builds were not asked for"
INTERRUPTED = "interrupted"
# Parts of the whole, for progress: builds in this process, samples, builds in other processes.
_BUILT, _SAMPLED = 0.4, 0.6
_SECONDS_AFTER_INTERRUPT = 0.2

Progress = Callable[[str, float], object]


@dataclass
class Point:
    """One size of the inputs, and how far its measurement has come; Ctrl-C ends it and leaves what there is."""

    task: Task
    variants: Sequence[Variant]
    seconds: float
    place: Place
    builds: int
    warm: bool
    report: Progress
    refused: dict[str, str] = field(default_factory=dict)
    ready: dict[str, _Ready] = field(default_factory=dict)
    interrupted: str = ""
    """What was being done when Ctrl-C came."""

    def measure(self) -> tuple[Measurement, ...]:
        """Every variant, in the order they were asked for."""
        import torch

        torch.compiler.reset()
        with _grad_mode(self.task):
            self._build_all()
            before, counts = Conditions.now(), compilation_counts()
            sampled = self._sample()
            around = doubts_between(before, Conditions.now(), os.cpu_count() or 1)
            if compilation_counts() != counts:
                around = (*around, Doubt.RECOMPILED)
        found = {name: _measured(one, name, sampled, around) for name, one in self.ready.items()}
        # After the samples: where Ctrl-C ends these builds, the samples are there.
        found = self._build_cold(found, sampled)
        return tuple(
            found.get(item.name) or Measurement(item.name, refused=self.refused[item.name], assumes=item.assumes)
            for item in self.variants
        )

    def _build_all(self) -> None:
        told = ""
        try:
            for index, item in enumerate(self.variants):
                told = f"building {item.name}"
                self.report(told, _BUILT * index / len(self.variants))
                try:
                    self.ready[item.name] = _get_ready(self.task, item)
                except RefusalError as error:
                    self.refused[item.name] = str(error)
        except KeyboardInterrupt:
            if not self.ready:
                raise  # nothing is there to be kept
            self.interrupted = told
            for item in self.variants:
                if item.name not in self.ready:
                    self.refused.setdefault(item.name, f"{INTERRUPTED} before it was built")

    def _sample(self) -> Rounds:
        started = perf_counter()
        seconds = min(self.seconds, _SECONDS_AFTER_INTERRUPT) if self.interrupted else self.seconds

        def on_round(number: int) -> None:
            part = min(1.0, (perf_counter() - started) / seconds)
            self.report(f"sampling, round {number}", _BUILT + (_SAMPLED - _BUILT) * part)

        calls = {name: one.call for name, one in self.ready.items()}
        rounds = sample_rounds(calls, device=self.task.device, seconds=seconds, on_round=on_round, keep_if_interrupted=True)
        if rounds.interrupted:
            self.interrupted = "sampling"
        return rounds

    def _build_cold(self, found: dict[str, Measurement], sampled: Rounds) -> dict[str, Measurement]:
        compiled = [item for item in self.variants if item.name in found and item.name != EAGER]
        before, fresh = Conditions.now(), {}
        for index, item in enumerate(compiled):
            part = _SAMPLED + (1 - _SAMPLED) * index / len(compiled)
            fresh[item.name] = self._fresh_builds(item, part)
        busy = Doubt.BUSY in doubts_between(before, Conditions.now(), os.cpu_count() or 1)
        return found | {name: _paid_back(found[name], fresh[name], sampled, busy) for name in fresh}

    def _fresh_builds(self, item: Variant, part: float) -> FreshBuilds:
        if self.interrupted or not self.builds:
            return FreshBuilds(reason=INTERRUPTED if self.interrupted else NO_COLD_BUILD)
        state = "cold"

        def waiting(now: str) -> None:
            nonlocal state
            state = now
            self.report(f"building {item.name} {state}, in a process of its own", part)

        try:
            waiting(state)
            return build_afresh(self.task, item, place=self.place, builds=self.builds, warm=self.warm, waiting=waiting)
        except KeyboardInterrupt:
            self.interrupted = f"building {item.name} {state}"
            return FreshBuilds(reason=INTERRUPTED)


@dataclass
class _Ready:
    """A variant that was built and warmed up."""

    measurement: Measurement
    call: Callable[[], object]
    warm: WarmUp


@contextmanager
def _grad_mode(task: Task) -> Iterator[None]:
    """Without gradients nothing may be kept for a backward; set once around all calls, it costs none of them anything."""
    import torch

    with torch.set_grad_enabled(task.gradients):
        yield


def _get_ready(task: Task, item: Variant) -> _Ready:
    counts = compilation_counts()
    prepared = item.prepare(task)
    caches = CacheUse.NOTHING if item.name == EAGER else cache_use(counts, compilation_counts())
    build = Build(prepared.build_seconds, caches)
    call = _bound(task, prepared)
    try:
        warm = warm_up(_waiting(task, call))
        memory = peak_memory(call, device=task.device)
    except Exception as error:  # it was built, and fails when called again
        raise RefusalError(one_line(error)) from error
    measurement = Measurement(
        item.name,
        build=build,
        memory=memory,
        first_seconds=warm.first_seconds,
        warm_ups=warm.calls,
        doubts=() if prepared.eager_because is None else (prepared.eager_because,),
        assumes=item.assumes,
    )
    return _Ready(measurement, call, warm)


def cache_use(before: dict[str, int], after: dict[str, int]) -> CacheUse:
    """What torch's counters say about its caches between two moments.

    >>> cache_use({}, {"inductor.fxgraph_cache_hit": 2}).name
    'FOUND'
    """
    grown = {name: number - before.get(name, 0) for name, number in after.items()}
    hits = sum(grown.get(name, 0) for name in ("inductor.fxgraph_cache_hit", "aot_autograd.autograd_cache_hit"))
    misses = grown.get("inductor.fxgraph_cache_miss", 0) + grown.get("inductor.fxgraph_cache_bypass", 0)
    if hits and misses:
        return CacheUse.PARTLY
    return CacheUse.FOUND if hits else CacheUse.ANEW if misses else CacheUse.UNKNOWN


def _bound(task: Task, prepared: Prepared) -> Callable[[], object]:
    """A call without arguments, with as little around the variant as it allows."""
    function = prepared.run if task.gradients or prepared.call is None else prepared.call
    args, kwargs = task.args, dict(task.kwargs)
    if not kwargs:
        return lambda: function(*args)
    return lambda: function(*args, **kwargs)


def _waiting(task: Task, call: Callable[[], object]) -> Callable[[], object]:
    if task.device != "cuda":
        return call
    import torch

    def waiting() -> None:
        call()
        torch.cuda.synchronize()

    return waiting


def _measured(one: _Ready, name: str, sampled: Rounds, around: tuple[Doubt, ...]) -> Measurement:
    samples = sampled.wall[name]
    summary = summarize(samples)
    eager = sampled.wall.get(EAGER)
    return replace(
        one.measurement,
        samples=samples,
        device_samples=sampled.device.get(name, ()),
        batch=sampled.batches[name],
        summary=summary,
        speed=None if eager is None or name == EAGER else ratio(samples, eager),
        doubts=(
            *one.measurement.doubts,
            *doubts_about(samples, summary, one.warm, faults=sampled.faults.get(name, 0.0)),
            *around,
        ),
    )


def _paid_back(measurement: Measurement, fresh: FreshBuilds, sampled: Rounds, busy: bool) -> Measurement:
    """A measurement with its builds in other processes, and the payback of a cold one where that is known."""
    name, eager = measurement.variant, sampled.wall.get(EAGER)
    build = fresh.added_to(measurement.build or Build(0.0))
    doubts = (*measurement.doubts, Doubt.BUSY_BUILD) if busy and fresh.cold else measurement.doubts
    measurement = replace(measurement, build=build, doubts=doubts)
    # What this process's own build took depends on what was built before it: nothing is promised from that.
    if eager is None or build.cold_seconds is None:
        return measurement
    passing = sampled.passing_gain(EAGER, name)
    return replace(measurement, payback=predict_payback(build.cold_seconds, eager, measurement.samples, passing=passing))
