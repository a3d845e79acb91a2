"""Phase 1 of the tour: one model, every backend; what the first call costs and where that time goes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import median_seconds, model_name, synchronize
from compile_inspect.tour.stages import Stage, time_by_stage
from compile_inspect.wording.quantities import percent, seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

BACKENDS = ("eager", "aot_eager", "inductor")
CHOICES = ("about the same", "about 10 times as long", "about 100 times as long", "1,000 times as long or more")


@dataclass(frozen=True)
class BackendRun:
    """One backend on one model: its first call, a later one, and the difference of its result from eager."""

    backend: str
    first_seconds: float = 0.0
    later_seconds: float = 0.0
    difference: float | None = 0.0
    """None for a model that draws random numbers, which cannot be compared."""
    stages: tuple[tuple[Stage, float], ...] = ()
    """The first call by torch's own timers."""
    unavailable: str = ""


@dataclass(frozen=True)
class BackendComparison:
    """The measurements of `run_backend_comparison`; `uncompiled_seconds` is the time of a call without torch.compile."""

    model: str
    uncompiled_seconds: float
    runs: tuple[BackendRun, ...]
    setup_seconds: float = 0.0
    """The first compilation in the process, of torch.sin with the last backend: imports and one-time setup of the toolchain."""

    @property
    def completed(self) -> tuple[BackendRun, ...]:
        """The backends that ran."""
        return tuple(run for run in self.runs if not run.unavailable)

    def answer(self) -> tuple[str, ...]:
        """Why the first call is slow, with the numbers of this run."""
        if not self.completed:
            return ()
        *others, run = self.completed
        sentences = [
            f"With {run.backend}, the first call of {self.model} took {seconds(run.first_seconds)} and a later call took "
            f"{seconds(run.later_seconds)}: {_times(run.first_seconds, run.later_seconds)}."
        ]
        if self.setup_seconds > 0:
            sentences.append(
                "That does not include one-time setup: before it, the first compilation in this process (of torch.sin) took "
                f"{seconds(self.setup_seconds)}. It imports modules, and with Inductor it also tests the C++ compiler and "
                "precompiles "
                "headers, once per cache folder."
            )
        stage_times = [(stage, value) for stage, value in run.stages if value > 0]
        if stage_times:
            breakdown = ", ".join(f"{stage.short} {seconds(value)}" for stage, value in stage_times)
            largest, largest_seconds = max(stage_times, key=lambda item: item[1])
            sentences.append(
                f"Only the first call compiles. torch's own timers break it down into {breakdown}. "
                f"The largest part is {largest.short}, {percent(largest_seconds, run.first_seconds)}."
            )
        if others:
            first_calls = " and ".join(f"{seconds(other.first_seconds)} with {other.backend}" for other in others)
            sentences.append(
                f"The other backends stop at earlier stages; their first calls took {first_calls}. Each was measured once."
            )
        differences = [item.difference for item in self.completed if item.difference is not None]
        if differences:
            sentences.append(f"No result differs from eager by more than {max(differences):.1g}.")
        else:
            sentences.append(
                f"{self.model} draws random numbers, so its results differ from call to call and were not compared."
            )
        return tuple(sentences)


def _times(first: float, later: float) -> str:
    """How much longer the first call took than later calls; coarse, because a first call is measured only once."""
    if not later > 0 or not first > 0:
        return "too short to compare"
    ratio = first / later
    return (
        f"{ratio:,.0f} times as long"
        if ratio >= 10
        else f"{ratio:.1f} times as long"
        if ratio >= 2
        else "less than twice as long"
    )


def run_backend_comparison(target: Target | None = None, *, guide: Guide | None = None) -> BackendComparison:
    """Compile a model with each backend, compare the results with eager, and time the first and later calls.

    The default target is the tour's MLP. With a guide, progress and results are printed.
    """
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    name = model_name(target)
    deepest = "Inductor" if guide.machine.inductor else "aot_eager"
    guide.ask(f"Compiled with {deepest}, how long does the first call take compared with a later one?", CHOICES)
    with torch.no_grad(), guide.working("compiling torch.sin to exclude one-time setup"), silence():
        # One-time setup at the first compilation is not part of the comparison.
        start = perf_counter()
        torch.compile(torch.sin, backend="inductor" if guide.machine.inductor else "aot_eager")(_small_tensor(guide))
        synchronize(guide.machine.device)
        setup = perf_counter() - start
        uncompiled = median_seconds(lambda: target.function(*target.args, **target.kwargs), guide.machine.device)
    with torch.no_grad():
        runs = tuple(_run(target, name, backend, guide) for backend in BACKENDS)
    comparison = BackendComparison(name, uncompiled, runs, setup)
    _show(comparison, guide)
    return comparison


def _small_tensor(guide: Guide) -> Any:
    import torch

    return torch.ones(64, device=guide.machine.device)


def _run(target: Target, name: str, backend: str, guide: Guide) -> BackendRun:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.tour.calls import difference, is_deterministic, result_of

    if backend == "inductor" and not guide.machine.inductor:
        guide.note(guide.machine.missing_requirement)
        return BackendRun(backend, unavailable=guide.machine.missing_requirement)
    torch_private.forget_compiled_code()  # so that the first call compiles
    with guide.working(f"compiling {name} with {backend}"), silence():
        compiled: Any = torch.compile(target.function, backend=backend)
        with record() as recording:
            start = perf_counter()
            compiled(*target.args, **target.kwargs)
            synchronize(guide.machine.device)
            first = perf_counter() - start
        later = median_seconds(lambda: compiled(*target.args, **target.kwargs), guide.machine.device)
        deviation = difference(result_of(target, compiled), result_of(target)) if is_deterministic(target) else None
    stages = tuple(time_by_stage(recording.inspection.phases).items())
    return BackendRun(backend, first, later, deviation, stages)


def _show(comparison: BackendComparison, guide: Guide) -> None:
    rows = [
        ["first compilation in the process (torch.sin)", seconds(comparison.setup_seconds), "-", "-", "-"],
        ["no torch.compile", "-", seconds(comparison.uncompiled_seconds), "-", "-"],
    ]
    for run in comparison.runs:
        if run.unavailable:
            rows.append([run.backend, "not available", "-", "-", "-"])
        else:
            times = f"{run.first_seconds / run.later_seconds:,.0f}" if run.later_seconds > 0 else "-"
            deviation = "random" if run.difference is None else f"{run.difference:.1g}"
            rows.append([run.backend, seconds(run.first_seconds), seconds(run.later_seconds), times, deviation])
    columns = ["Backend", ">First call", ">Later call", ">First / later", ">Max difference from eager"]
    guide.table(f"{comparison.model} with each backend", columns, rows)
    if not comparison.completed:
        return
    deepest = comparison.completed[-1]
    untimed = deepest.first_seconds - sum(value for _, value in deepest.stages)
    stages = [[stage.value, seconds(value), percent(value, deepest.first_seconds)] for stage, value in deepest.stages]
    stages.append(
        ["Not timed by torch: imports and the call itself", seconds(untimed), percent(untimed, deepest.first_seconds)]
    )
    guide.table(f"The first call with {deepest.backend}, by stage", ["Stage", ">Time", ">Share"], stages)
    ratio = deepest.first_seconds / deepest.later_seconds if deepest.later_seconds > 0 else 0.0
    guide.reveal(0 if ratio < 3 else 1 if ratio < 30 else 2 if ratio < 1000 else 3)
