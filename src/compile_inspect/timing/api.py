"""`time_variants`: build, warm up and sample all variants of a target in turn, and compare them with eager."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from compile_inspect.errors import TargetError
from compile_inspect.records.timing import Timing, TimingPoint
from compile_inspect.target import Target
from compile_inspect.timing.cold_builds import TargetOrigin, TaskSource
from compile_inspect.timing.point_measurement import EAGER, PointMeasurement, Progress
from compile_inspect.timing.sweep import Sweep, describe_inputs, points
from compile_inspect.variants import Task, Variant, default_variants, named_variants, variant

# Enough for several hundred rounds of calls of one millisecond.
DEFAULT_SECONDS = 2.0


def time_variants(
    function: Callable[..., Any] | Target,
    /,
    *args: Any,
    variants: str | Sequence[str | Variant] | None = None,
    gradients: bool | None = None,
    seconds: float = DEFAULT_SECONDS,
    sweep: Sweep | None = None,
    builds: int = 1,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Timing:
    """Time all variants of a function: which are faster than eager, by how much, and when their builds pay back.

    The variants are built one after the other, called until nothing more is compiled and the times have settled, and then
    sampled in turn, round by round, for `seconds` in total. A variant that cannot run is recorded with its reason, and the
    others continue; `eager` is always included. With `gradients`, a call is one forward and one backward pass; with None,
    this is the case if an input requires a gradient. `progress` is called with the current step and the completed fraction.

    The cost of a build is measured in separate processes: `builds` times cold, with an empty cache folder, then once warm,
    with what the last cold build left there. The payback is computed for a cold build. With `builds=0`, or if the function
    cannot be sent to another process, there is no payback, and the record gives the reason.

    Ctrl-C ends the run and returns what has been measured so far; `Timing.interrupted_during` is the step it interrupted.

    `sweep={"batch": [1, 8, 64]}` measures at several sizes (`compile_inspect.timing.sweep` documents other axes), and
    `sweep="further"` at the further inputs of a `Target`. If the function has keyword arguments with the names of the options
    above, pass a `Target`. Everything that torch has compiled in this process is discarded first, so that builds are complete.

        timing = compile_inspect.time_variants(model, x, variants=["inductor", "aot-inductor"], sweep={"batch": [1, 64]})
    """
    if isinstance(function, Target):
        if args or kwargs:
            raise TargetError("a Target has its own inputs: pass only the Target and options to time_variants")
        target = function if gradients is None else replace(function, gradients=gradients)
    else:
        target = Target(function, args, kwargs, gradients=gradients)
    return measure(target, variants=variants, seconds=seconds, sweep=sweep, builds=builds, progress=progress)


def measure(
    target: Target,
    *,
    variants: str | Sequence[str | Variant] | None = None,
    seconds: float = DEFAULT_SECONDS,
    sweep: Sweep | None = None,
    builds: int = 1,
    progress: Progress | None = None,
    origin: TargetOrigin | None = None,
    warm: bool = True,
) -> Timing:
    """Like `time_variants`, for a target with its origin; `warm=False` omits the warm builds."""
    import torch

    if not seconds > 0:
        raise ValueError(f"seconds must be more than 0, not {seconds}")
    if builds < 0:
        raise ValueError(f"builds must be 0 or more, not {builds}")
    task = Task.of(target)
    selection = select_variants(task, variants)
    tasks = list(points(task, sweep))
    report = progress or (lambda step, fraction: None)
    measured_points: list[TimingPoint] = []
    interrupted_during = ""
    for index, (sizes, task_at_point) in enumerate(tasks):
        label = ", ".join(f"{name} {size}" for name, size in sizes.items())
        inner = _progress_of_point(report, f"{label}: " if label else "", index, len(tasks))
        source = TaskSource(origin, sweep, index)
        point = PointMeasurement(task_at_point, selection, seconds, source, builds, warm, inner)
        try:
            measured_points.append(TimingPoint(sizes, describe_inputs(task_at_point), point.measure()))
        except KeyboardInterrupt:
            if not measured_points:
                raise
            interrupted_during = f"{label}: building"
            break
        if point.interrupted_during:
            interrupted_during = f"{label}: {point.interrupted_during}" if label else point.interrupted_during
            break
    return Timing(
        target=task.name if origin is None else origin.specification,
        device=task.device,
        hardware=torch.cuda.get_device_name() if task.device == "cuda" else platform.processor() or platform.machine(),
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        gradients=task.gradients,
        seconds=seconds,
        points=tuple(measured_points),
        interrupted_during=interrupted_during,
    )


def select_variants(task: Task, variants: str | Sequence[str | Variant] | None) -> tuple[Variant, ...]:
    """The variants to time, with eager first because all others are compared with it."""
    requested = default_variants(task) if variants is None else named_variants(variants)
    by_name = {item.name: item for item in (variant(EAGER), *requested)}
    return tuple(by_name.values())


def _progress_of_point(report: Progress, label: str, index: int, count: int) -> Progress:
    return lambda step, fraction: report(label + step, (index + fraction) / count)
