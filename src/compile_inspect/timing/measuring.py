"""`time_variants`: every variant of a target built, warmed up, sampled in turn with the others, and compared with eager."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from compile_inspect.capture.counting import compilation_counts
from compile_inspect.errors import TargetError
from compile_inspect.records.timing import Build, CacheUse, Doubt, Measurement, Timing, TimingPoint
from compile_inspect.target import Target
from compile_inspect.timing.cold import Origin, build_afresh
from compile_inspect.timing.conditions import Conditions, doubts_about, doubts_between
from compile_inspect.timing.memory import peak_memory
from compile_inspect.timing.noise import ratio, summarize
from compile_inspect.timing.payback import predict_payback
from compile_inspect.timing.sampling import Rounds, sample_rounds
from compile_inspect.timing.sweep import FURTHER, Sweep, describe_inputs, points
from compile_inspect.timing.warm_up import WarmUp, warm_up
from compile_inspect.variants import Prepared, Refused, Task, Variant, default_variants, variant
from compile_inspect.variants.base import one_line

EAGER = "eager"
# Enough for some hundred rounds of calls of a millisecond.
DEFAULT_SECONDS = 2.0

Progress = Callable[[str, float], object]


def time_variants(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    variants: Sequence[str | Variant] | None = None,
    gradients: bool | None = None,
    seconds: float = DEFAULT_SECONDS,
    sweep: Sweep | None = None,
    cold: bool = False,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Timing:
    """Time a function in every variant, and say which is faster than eager, by how much, and when that pays.

    Variants are built one after the other, called until nothing is compiled any more and times have settled, then
    sampled in turn, round by round, for `seconds` in all. One that cannot run is kept with its reason, and the others go
    on; `eager` is always among them. With `gradients` a call is one forward and one backward; where that is None, it is
    so if an input requires a gradient. `cold=True` builds every variant in two fresh processes too, with empty and with
    filled caches. `progress` is called with what is being done and the part that is done.

    `sweep={"batch": [1, 8, 64]}` does it all at several sizes (`compile_inspect.timing.sweep` says how to name others),
    `sweep="further"` at the further inputs of a `Target`. Keyword arguments of the function with one of the names above
    need a `Target`. What torch compiled before in this process is forgotten, so that builds are seen whole.

        timing = compile_inspect.time_variants(model, x, variants=["inductor", "aot-inductor"], sweep={"batch": [1, 64]})
    """
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has inputs of its own: give time_variants nothing but the Target and its options")
        target = function if gradients is None else replace(function, gradients=gradients)
    else:
        target = Target(function, args, kwargs, gradients=gradients)
    return measure(target, variants=variants, seconds=seconds, sweep=sweep, cold=cold, progress=progress)


def measure(
    target: Target,
    *,
    variants: Sequence[str | Variant] | None = None,
    seconds: float = DEFAULT_SECONDS,
    sweep: Sweep | None = None,
    cold: bool = False,
    progress: Progress | None = None,
    origin: Origin | None = None,
) -> Timing:
    """As `time_variants`, for a target and where it came from."""
    import torch

    if not seconds > 0:
        raise ValueError(f"seconds must be more than 0, not {seconds}")
    task = Task.of(target)
    chosen = choose(task, variants)
    tasks = list(points(task, sweep))
    report = progress or (lambda told, part: None)
    done = []
    for index, (sizes, at) in enumerate(tasks):
        label = ", ".join(f"{name} {size}" for name, size in sizes.items())
        inner = _part(report, f"{label}: " if label else "", index, len(tasks))
        fresh = _Fresh(origin, sweep, sizes) if cold else None
        done.append(TimingPoint(sizes, describe_inputs(at), _measure_point(at, chosen, seconds, fresh, inner)))
    return Timing(
        target=task.name if origin is None else origin.specification,
        device=task.device,
        hardware=torch.cuda.get_device_name() if task.device == "cuda" else platform.processor() or platform.machine(),
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        gradients=task.gradients,
        seconds=seconds,
        points=tuple(done),
    )


def choose(task: Task, variants: Sequence[str | Variant] | None) -> tuple[Variant, ...]:
    """The variants to time, eager first: everything is compared with it."""
    if isinstance(variants, str):
        raise TargetError(f"variants is the text {variants!r}: write a list, ['{variants}']")
    named = default_variants(task) if variants is None else [variant(v) if isinstance(v, str) else v for v in variants]
    by_name = {item.name: item for item in (variant(EAGER), *named)}
    return tuple(by_name.values())


@dataclass(frozen=True)
class _Fresh:
    """How a fresh process gets at the inputs of one point."""

    origin: Origin | None
    sweep: Sweep | None
    sizes: dict[str, int]

    def build(self, task: Task, name: str, build: Build) -> Build:
        if self.sweep == FURTHER:
            origin, sizes = None, None  # further inputs have no name to be found by
        else:
            origin = self.origin
            keys = list(self.sweep) if isinstance(self.sweep, Mapping) else []
            sizes = {key: [size] for key, size in zip(keys, self.sizes.values(), strict=True)} if origin else None
        found = build_afresh(task, name, origin=origin, sweep=sizes)
        return replace(build, cold_seconds=found.cold_seconds, warm_seconds=found.warm_seconds, reason=found.reason)


@dataclass
class _Ready:
    """A variant that was built and warmed up."""

    measurement: Measurement
    call: Callable[[], object]
    warm: WarmUp


def _measure_point(
    task: Task, chosen: Sequence[Variant], seconds: float, fresh: _Fresh | None, report: Progress
) -> tuple[Measurement, ...]:
    import torch

    torch.compiler.reset()
    found: dict[str, Measurement] = {}
    ready: dict[str, _Ready] = {}
    with _grad_mode(task):
        for index, item in enumerate(chosen):
            report(f"building {item.name}", 0.6 * index / len(chosen))
            try:
                ready[item.name] = _get_ready(task, item, fresh)
            except Refused as error:
                found[item.name] = Measurement(item.name, refused=str(error), assumes=item.assumes)
        before, counts = Conditions.now(), compilation_counts()
        sampled = _sample(task, ready, seconds, report)
        around = doubts_between(before, Conditions.now(), os.cpu_count() or 1)
        if compilation_counts() != counts:
            around = (*around, Doubt.RECOMPILED)
    eager = sampled.wall.get(EAGER)
    for name, one in ready.items():
        found[name] = _measured(one, name, sampled, eager, around)
    return tuple(found[item.name] for item in chosen)


@contextmanager
def _grad_mode(task: Task) -> Iterator[None]:
    """Without gradients nothing may be kept for a backward; set once around all calls, it costs none of them anything."""
    import torch

    with torch.set_grad_enabled(task.gradients):
        yield


def _get_ready(task: Task, item: Variant, fresh: _Fresh | None) -> _Ready:
    counts = compilation_counts()
    prepared = item.prepare(task)
    caches = CacheUse.NOTHING if item.name == EAGER else cache_use(counts, compilation_counts())
    build = Build(prepared.build_seconds, caches)
    call = _bound(task, prepared)
    try:
        warm = warm_up(_waiting(task, call))
        memory = peak_memory(call, device=task.device)
    except Exception as error:  # it was built, and fails when called again
        raise Refused(one_line(error)) from error
    if fresh is not None and item.name != EAGER:
        build = fresh.build(task, item.name, build)
    measurement = Measurement(
        item.name, build=build, memory=memory, first_seconds=warm.first_seconds, warm_ups=warm.calls, assumes=item.assumes
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


def _sample(task: Task, ready: dict[str, _Ready], seconds: float, report: Progress) -> Rounds:
    started = perf_counter()

    def on_round(number: int) -> None:
        report(f"sampling, round {number}", 0.6 + 0.4 * min(1.0, (perf_counter() - started) / seconds))

    calls = {name: one.call for name, one in ready.items()}
    return sample_rounds(calls, device=task.device, seconds=seconds, on_round=on_round)


def _measured(
    one: _Ready, name: str, sampled: Rounds, eager: tuple[float, ...] | None, around: tuple[Doubt, ...]
) -> Measurement:
    samples = sampled.wall[name]
    summary = summarize(samples)
    measurement = replace(
        one.measurement,
        samples=samples,
        device_samples=sampled.device.get(name, ()),
        batch=sampled.batches[name],
        summary=summary,
        doubts=(*doubts_about(samples, summary, one.warm, faults=sampled.faults.get(name, 0.0)), *around),
    )
    build = measurement.build
    if eager is None or name == EAGER or build is None:
        return measurement
    # What a first build costs, where that is known; else what it cost here.
    cost = build.seconds if build.cold_seconds is None else build.cold_seconds
    payback = predict_payback(cost, eager, samples, passing=sampled.passing_gain(EAGER, name))
    return replace(measurement, speed=ratio(samples, eager), payback=payback)


def _part(report: Progress, label: str, index: int, count: int) -> Progress:
    return lambda told, part: report(label + told, (index + part) / count)
