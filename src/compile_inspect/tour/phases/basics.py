"""Phase 1 of the tour: one model, every backend; what the first call costs, and where that time goes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.tour.calls import median_seconds, model_name, wait
from compile_inspect.tour.stages import Stage, time_by_stage
from compile_inspect.wording.quantities import percent, seconds

if TYPE_CHECKING:
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

BACKENDS = ("eager", "aot_eager", "inductor")
FACTORS = ("about as long", "10 times", "100 times", "1,000 times or more")


@dataclass(frozen=True)
class BackendRun:
    """One backend on one model: its first call, a later one, and how far its result is from that of eager."""

    backend: str
    first_seconds: float = 0.0
    later_seconds: float = 0.0
    difference: float | None = 0.0
    """None where the model draws random numbers, and cannot be compared."""
    stages: tuple[tuple[Stage, float], ...] = ()
    """What torch's own timers say about the first call."""
    refused: str = ""


@dataclass(frozen=True)
class BackendComparison:
    """What `run_backend_comparison` has measured; `uncompiled_seconds` is a call of the model as it is."""

    model: str
    uncompiled_seconds: float
    runs: tuple[BackendRun, ...]
    setup_seconds: float = 0.0
    """The first compilation of all, of a sine with the last backend: imports, and what the tool chain does once."""

    @property
    def ran(self) -> tuple[BackendRun, ...]:
        """The backends that could run."""
        return tuple(run for run in self.runs if not run.refused)

    def answer(self) -> tuple[str, ...]:
        """Why the first call is slow, in figures of this run."""
        if not self.ran:
            return ()
        *others, run = self.ran
        told = [
            f"With {run.backend} the first call of {self.model} took {seconds(run.first_seconds)} and a later one "
            f"{seconds(run.later_seconds)}: {_times(run.first_seconds, run.later_seconds)}."
        ]
        if self.setup_seconds > 0:
            told.append(
                "Not counted there: before it, the first compilation of all, that of a sine, took "
                f"{seconds(self.setup_seconds)}. Modules are imported in it, and with Inductor the compiler is tried and its "
                "headers are translated, once for a cache folder."
            )
        spent = [(stage, value) for stage, value in run.stages if value > 0]
        if spent:
            parts = ", ".join(f"{stage.short} {seconds(value)}" for stage, value in spent)
            largest, most = max(spent, key=lambda item: item[1])
            told.append(
                f"The first call compiles, the others do not. Of its time torch's own timers give {parts}: "
                f"{largest.short} has the largest part, {percent(most, run.first_seconds)}."
            )
        if others:
            listed = " and ".join(f"{seconds(other.first_seconds)} with {other.backend}" for other in others)
            told.append(f"The other backends stop earlier; their first calls took {listed}. Each was measured once.")
        apart = [item.difference for item in self.ran if item.difference is not None]
        if apart:
            told.append(f"No result differs from that of eager by more than {max(apart):.1g}.")
        else:
            told.append(f"{self.model} draws random numbers: its results differ from call to call, and were not compared.")
        return tuple(told)


def _times(first: float, later: float) -> str:
    """How a first call compares with later ones, which were measured often enough, as it was not."""
    if not later > 0 or not first > 0:
        return "too short to compare"
    ratio = first / later
    return f"{ratio:,.0f} times as long" if ratio >= 10 else f"{ratio:.1f} times as long" if ratio >= 2 else "not twice as long"


def run_backend_comparison(target: Target | None = None, *, guide: Guide | None = None) -> BackendComparison:
    """Compile a model with each backend, compare the results with eager, and time the first and later calls.

    Without a target it is the tour's MLP. With a guide, everything is shown as it happens.
    """
    import torch

    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    target = target or guide.model("mlp")
    name = model_name(target)
    deepest = "Inductor" if guide.machine.inductor else "aot_eager"
    guide.guess(f"Compiled by {deepest}, the first call takes how many times as long as a later one?", FACTORS)
    with torch.no_grad(), guide.working("compiling a sine, for what is done once"), silence():
        # What is imported, tried and translated at the first compilation is no part of the comparison.
        started = perf_counter()
        torch.compile(torch.sin, backend="inductor" if guide.machine.inductor else "aot_eager")(_few_numbers(guide))
        wait(guide.machine.device)
        setup = perf_counter() - started
        uncompiled = median_seconds(lambda: target.function(*target.args, **target.kwargs), guide.machine.device)
    with torch.no_grad():
        runs = tuple(_run(target, name, backend, guide) for backend in BACKENDS)
    comparison = BackendComparison(name, uncompiled, runs, setup)
    _show(comparison, guide)
    return comparison


def _few_numbers(guide: Guide) -> Any:
    import torch

    return torch.ones(64, device=guide.machine.device)


def _run(target: Target, name: str, backend: str, guide: Guide) -> BackendRun:
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.tour.calls import difference, is_steady, result_of

    if backend == "inductor" and not guide.machine.inductor:
        guide.note(guide.machine.lacking)
        return BackendRun(backend, refused=guide.machine.lacking)
    torch_private.forget_compiled_code()  # the first call is to be a first one
    with guide.working(f"compiling {name} with {backend}"), silence():
        compiled: Any = torch.compile(target.function, backend=backend)
        with record() as recording:
            started = perf_counter()
            compiled(*target.args, **target.kwargs)
            wait(guide.machine.device)
            first = perf_counter() - started
        later = median_seconds(lambda: compiled(*target.args, **target.kwargs), guide.machine.device)
        apart = difference(result_of(target, compiled), result_of(target)) if is_steady(target) else None
    stages = tuple(time_by_stage(recording.inspection.phases).items())
    return BackendRun(backend, first, later, apart, stages)


def _show(comparison: BackendComparison, guide: Guide) -> None:
    rows = [
        ["the first compilation of all, of a sine", seconds(comparison.setup_seconds), "-", "-", "-"],
        ["none: the model as it is", "-", seconds(comparison.uncompiled_seconds), "-", "-"],
    ]
    for run in comparison.runs:
        if run.refused:
            rows.append([run.backend, "not here", "-", "-", "-"])
        else:
            times = f"{run.first_seconds / run.later_seconds:,.0f}" if run.later_seconds > 0 else "-"
            apart = "random" if run.difference is None else f"{run.difference:.1g}"
            rows.append([run.backend, seconds(run.first_seconds), seconds(run.later_seconds), times, apart])
    columns = ["Backend", ">First call", ">Later call", ">First / later", ">Largest difference from eager"]
    guide.table(f"{comparison.model} under each backend", columns, rows)
    if not comparison.ran:
        return
    deepest = comparison.ran[-1]
    other = deepest.first_seconds - sum(value for _, value in deepest.stages)
    stages = [[stage.value, seconds(value), percent(value, deepest.first_seconds)] for stage, value in deepest.stages]
    stages.append(["Not timed by torch: imports, the call itself", seconds(other), percent(other, deepest.first_seconds)])
    guide.table(f"The first call with {deepest.backend}, by stage", ["Stage", ">Time", ">Share"], stages)
    ratio = deepest.first_seconds / deepest.later_seconds if deepest.later_seconds > 0 else 0.0
    guide.settle(0 if ratio < 3 else 1 if ratio < 30 else 2 if ratio < 1000 else 3)
