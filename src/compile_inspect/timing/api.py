"""`time_variants`: every variant of a target built, warmed up, sampled in turn with the others, and compared with eager."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from compile_inspect.errors import TargetError
from compile_inspect.records.timing import Timing, TimingPoint
from compile_inspect.target import Target
from compile_inspect.timing.cold import Origin, Place
from compile_inspect.timing.point import EAGER, Point, Progress
from compile_inspect.timing.sweep import Sweep, describe_inputs, points
from compile_inspect.variants import Task, Variant, default_variants, named_variants, variant

# Enough for some hundred rounds of calls of a millisecond.
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
    """Time a function in every variant, and say which is faster than eager, by how much, and when that pays.

    Variants are built one after the other, called until nothing is compiled any more and times have settled, then
    sampled in turn, round by round, for `seconds` in all. One that cannot run is kept with its reason, and the others go
    on; `eager` is always among them. With `gradients` a call is one forward and one backward; where that is None, it is
    so if an input requires a gradient. `progress` is called with what is being done and the part that is done.

    What a build costs is seen in processes of their own: `builds` times cold, with an empty cache folder, then once warm,
    with what the last cold build left there. The payback is that of a cold build. With `builds=0`, or where the function
    cannot be sent to another process, there is no payback, and the record says why.

    Ctrl-C ends the run and keeps what has been measured by then: `Timing.interrupted` says what was being done.

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
    return measure(target, variants=variants, seconds=seconds, sweep=sweep, builds=builds, progress=progress)


def measure(
    target: Target,
    *,
    variants: str | Sequence[str | Variant] | None = None,
    seconds: float = DEFAULT_SECONDS,
    sweep: Sweep | None = None,
    builds: int = 1,
    progress: Progress | None = None,
    origin: Origin | None = None,
    warm: bool = True,
) -> Timing:
    """As `time_variants`, for a target and where it came from; `warm=False` leaves out the warm builds."""
    import torch

    if not seconds > 0:
        raise ValueError(f"seconds must be more than 0, not {seconds}")
    if builds < 0:
        raise ValueError(f"builds must be 0 or more, not {builds}")
    task = Task.of(target)
    chosen = choose(task, variants)
    tasks = list(points(task, sweep))
    report = progress or (lambda told, part: None)
    done: list[TimingPoint] = []
    interrupted = ""
    for index, (sizes, at) in enumerate(tasks):
        label = ", ".join(f"{name} {size}" for name, size in sizes.items())
        inner = _part(report, f"{label}: " if label else "", index, len(tasks))
        point = Point(at, chosen, seconds, Place(origin, sweep, index), builds, warm, inner)
        try:
            done.append(TimingPoint(sizes, describe_inputs(at), point.measure()))
        except KeyboardInterrupt:
            if not done:
                raise
            interrupted = f"{label}: building"
            break
        if point.interrupted:
            interrupted = f"{label}: {point.interrupted}" if label else point.interrupted
            break
    return Timing(
        target=task.name if origin is None else origin.specification,
        device=task.device,
        hardware=torch.cuda.get_device_name() if task.device == "cuda" else platform.processor() or platform.machine(),
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
        gradients=task.gradients,
        seconds=seconds,
        points=tuple(done),
        interrupted=interrupted,
    )


def choose(task: Task, variants: str | Sequence[str | Variant] | None) -> tuple[Variant, ...]:
    """The variants to time, eager first: everything is compared with it."""
    named = default_variants(task) if variants is None else named_variants(variants)
    by_name = {item.name: item for item in (variant(EAGER), *named)}
    return tuple(by_name.values())


def _part(report: Progress, label: str, index: int, count: int) -> Progress:
    return lambda told, part: report(label + told, (index + part) / count)
