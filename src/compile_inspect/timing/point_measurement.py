"""Measure all variants at one input size: build, warm up, sample in turn, then build again in separate processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from compile_inspect.capture.compile_counters import compilation_counts
from compile_inspect.records.timing import Build, CacheUse, Measurement, MeasurementWarning
from compile_inspect.timing.cold_builds import FreshBuilds, TaskSource, measure_fresh_builds
from compile_inspect.timing.measurement_warnings import Conditions, warnings_about, warnings_between
from compile_inspect.timing.memory import peak_memory
from compile_inspect.timing.noise import ratio, summarize
from compile_inspect.timing.payback import predict_payback
from compile_inspect.timing.sampling import Rounds, sample_rounds
from compile_inspect.timing.warm_up import WarmUp, warm_up
from compile_inspect.variants import Prepared, RefusalError, Task, Variant
from compile_inspect.variants.base import one_line

EAGER = "eager"
NO_COLD_BUILD_REASON = "no cold builds were requested"
INTERRUPTED_REASON = "interrupted"
# For progress reports: the fraction of the work that is complete after the builds in this process, and after the samples.
_FRACTION_AFTER_BUILDS, _FRACTION_AFTER_SAMPLES = 0.4, 0.6
_MAX_SAMPLING_SECONDS_AFTER_INTERRUPT = 0.2

Progress = Callable[[str, float], object]


@dataclass
class PointMeasurement:
    """The measurement at one input size and its progress; after Ctrl-C, the results so far are returned."""

    task: Task
    variants: Sequence[Variant]
    seconds: float
    source: TaskSource
    builds: int
    warm: bool
    report: Progress
    refusals: dict[str, str] = field(default_factory=dict)
    ready_variants: dict[str, _ReadyVariant] = field(default_factory=dict)
    interrupted_during: str = ""
    """The step that Ctrl-C interrupted."""

    def measure(self) -> tuple[Measurement, ...]:
        """Measure all variants; return the measurements in the order of the request."""
        import torch

        torch.compiler.reset()
        with _grad_mode(self.task):
            self._build_all()
            before, counts = Conditions.now(), compilation_counts()
            rounds = self._sample()
            run_warnings = warnings_between(before, Conditions.now(), os.cpu_count() or 1)
            if compilation_counts() != counts:
                run_warnings = (*run_warnings, MeasurementWarning.RECOMPILATION)
        measurements = {name: _measurement(ready, name, rounds, run_warnings) for name, ready in self.ready_variants.items()}
        # Cold builds come after the samples, so that Ctrl-C during these builds does not lose the samples.
        measurements = self._build_cold(measurements, rounds)
        return tuple(
            measurements.get(item.name) or Measurement(item.name, refusal=self.refusals[item.name], assumptions=item.assumes)
            for item in self.variants
        )

    def _build_all(self) -> None:
        step = ""
        try:
            for index, item in enumerate(self.variants):
                step = f"building {item.name}"
                self.report(step, _FRACTION_AFTER_BUILDS * index / len(self.variants))
                try:
                    self.ready_variants[item.name] = _build_and_warm_up(self.task, item)
                except RefusalError as error:
                    self.refusals[item.name] = str(error)
        except KeyboardInterrupt:
            if not self.ready_variants:
                raise  # there are no results to keep
            self.interrupted_during = step
            for item in self.variants:
                if item.name not in self.ready_variants:
                    self.refusals.setdefault(item.name, f"{INTERRUPTED_REASON} before it was built")

    def _sample(self) -> Rounds:
        started = perf_counter()
        seconds = min(self.seconds, _MAX_SAMPLING_SECONDS_AFTER_INTERRUPT) if self.interrupted_during else self.seconds

        def on_round(number: int) -> None:
            fraction = min(1.0, (perf_counter() - started) / seconds)
            self.report(
                f"sampling, round {number}",
                _FRACTION_AFTER_BUILDS + (_FRACTION_AFTER_SAMPLES - _FRACTION_AFTER_BUILDS) * fraction,
            )

        calls = {name: ready.call for name, ready in self.ready_variants.items()}
        rounds = sample_rounds(calls, device=self.task.device, seconds=seconds, on_round=on_round, keep_if_interrupted=True)
        if rounds.interrupted:
            self.interrupted_during = "sampling"
        return rounds

    def _build_cold(self, measurements: dict[str, Measurement], rounds: Rounds) -> dict[str, Measurement]:
        compiled = [item for item in self.variants if item.name in measurements and item.name != EAGER]
        before, fresh_builds = Conditions.now(), {}
        for index, item in enumerate(compiled):
            fraction = _FRACTION_AFTER_SAMPLES + (1 - _FRACTION_AFTER_SAMPLES) * index / len(compiled)
            fresh_builds[item.name] = self._fresh_builds(item, fraction)
        cpu_contention = MeasurementWarning.CPU_CONTENTION in warnings_between(before, Conditions.now(), os.cpu_count() or 1)
        return measurements | {
            name: _with_payback(measurements[name], fresh_builds[name], rounds, cpu_contention) for name in fresh_builds
        }

    def _fresh_builds(self, item: Variant, fraction: float) -> FreshBuilds:
        if self.interrupted_during or not self.builds:
            return FreshBuilds(reason=INTERRUPTED_REASON if self.interrupted_during else NO_COLD_BUILD_REASON)
        state = "cold"

        def on_wait(new_state: str) -> None:
            nonlocal state
            state = new_state
            self.report(f"building {item.name} {state}, in a separate process", fraction)

        try:
            on_wait(state)
            return measure_fresh_builds(
                self.task, item, source=self.source, builds=self.builds, warm=self.warm, on_wait=on_wait
            )
        except KeyboardInterrupt:
            self.interrupted_during = f"building {item.name} {state}"
            return FreshBuilds(reason=INTERRUPTED_REASON)


@dataclass
class _ReadyVariant:
    """A variant that was built and warmed up."""

    measurement: Measurement
    call: Callable[[], object]
    warm: WarmUp


@contextmanager
def _grad_mode(task: Task) -> Iterator[None]:
    """Disable gradients if they are not measured. Setting the mode once around all calls adds no cost to any of them."""
    import torch

    with torch.set_grad_enabled(task.gradients):
        yield


def _build_and_warm_up(task: Task, item: Variant) -> _ReadyVariant:
    counts = compilation_counts()
    prepared = item.prepare(task)
    caches = CacheUse.NOT_NEEDED if item.name == EAGER else cache_use(counts, compilation_counts())
    build = Build(prepared.build_seconds, caches)
    call = _call_without_arguments(task, prepared)
    try:
        warm = warm_up(_synchronized(task, call))
        memory = peak_memory(call, device=task.device)
    except Exception as error:  # it was built, but fails when it is called again
        raise RefusalError(one_line(error)) from error
    measurement = Measurement(
        item.name,
        build=build,
        memory=memory,
        first_call_seconds=warm.first_seconds,
        warm_up_calls=warm.calls,
        warnings=() if prepared.eager_reason is None else (prepared.eager_reason,),
        assumptions=item.assumes,
    )
    return _ReadyVariant(measurement, call, warm)


def cache_use(before: dict[str, int], after: dict[str, int]) -> CacheUse:
    """How torch used its caches between two snapshots of its counters.

    >>> cache_use({}, {"inductor.fxgraph_cache_hit": 2}).name
    'HIT'
    """
    increases = {name: number - before.get(name, 0) for name, number in after.items()}
    hits = sum(increases.get(name, 0) for name in ("inductor.fxgraph_cache_hit", "aot_autograd.autograd_cache_hit"))
    misses = increases.get("inductor.fxgraph_cache_miss", 0) + increases.get("inductor.fxgraph_cache_bypass", 0)
    if hits and misses:
        return CacheUse.PARTIAL_HIT
    return CacheUse.HIT if hits else CacheUse.MISS if misses else CacheUse.UNKNOWN


def _call_without_arguments(task: Task, prepared: Prepared) -> Callable[[], object]:
    """A call without arguments, with as little overhead around the variant as possible."""
    function = prepared.run if task.gradients or prepared.call is None else prepared.call
    args, kwargs = task.args, dict(task.kwargs)
    if not kwargs:
        return lambda: function(*args)
    return lambda: function(*args, **kwargs)


def _synchronized(task: Task, call: Callable[[], object]) -> Callable[[], object]:
    if task.device != "cuda":
        return call
    import torch

    def synchronized() -> None:
        call()
        torch.cuda.synchronize()

    return synchronized


def _measurement(ready: _ReadyVariant, name: str, rounds: Rounds, run_warnings: tuple[MeasurementWarning, ...]) -> Measurement:
    samples = rounds.wall[name]
    summary = summarize(samples)
    eager = rounds.wall.get(EAGER)
    return replace(
        ready.measurement,
        samples=samples,
        device_samples=rounds.device.get(name, ()),
        calls_per_sample=rounds.batches[name],
        summary=summary,
        speedup=None if eager is None or name == EAGER else ratio(samples, eager),
        warnings=(
            *ready.measurement.warnings,
            *warnings_about(samples, summary, ready.warm, faults=rounds.faults.get(name, 0.0)),
            *run_warnings,
        ),
    )


def _with_payback(measurement: Measurement, fresh_builds: FreshBuilds, rounds: Rounds, cpu_contention: bool) -> Measurement:
    """A measurement with its builds in separate processes, and the payback of a cold build if it is known."""
    name, eager = measurement.variant, rounds.wall.get(EAGER)
    build = fresh_builds.added_to(measurement.build or Build(0.0))
    warnings = measurement.warnings
    if cpu_contention and fresh_builds.cold_seconds:
        warnings = (*warnings, MeasurementWarning.BUILD_CPU_CONTENTION)
    measurement = replace(measurement, build=build, warnings=warnings)
    # The build time in this process depends on the earlier builds, so no payback is predicted from it.
    if eager is None or build.cold_seconds is None:
        return measurement
    temporary = rounds.temporary_gain(EAGER, name)
    payback = predict_payback(build.cold_seconds, eager, measurement.samples, temporary_gain=temporary)
    return replace(measurement, payback=payback)
