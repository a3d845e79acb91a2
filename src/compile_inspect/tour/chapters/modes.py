"""A chapter of the tour: every mode of torch.compile on one model, what it changes and what that does here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.tour.calls import call_time, difference, is_steady, model_name, result_of, wait
from compile_inspect.tour.chapters.generated_code import GeneratedCode
from compile_inspect.tour.chapters.mode_findings import CALLS_MADE, ModeComparison, ModeRun
from compile_inspect.tour.chapters.watching import device_of
from compile_inspect.tour.intervals import CallTime
from compile_inspect.wording.quantities import seconds

if TYPE_CHECKING:
    from compile_inspect.records import Inspection
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_MOST_SECONDS = 20.0
"""A build by max-autotune that took longer is not made a second time."""
_CHOICES = ("no other kernels than by default", "it records CUDA graphs", "it raises an error")


def run_mode_comparison(target: Target | None = None, *, guide: Guide | None = None) -> ModeComparison:
    """Compile a model in every mode, and see which settings, which code and which times it gives.

    Without a target it is the tour's MLP.
    """
    import torch

    from compile_inspect import torch_private
    from compile_inspect.silence import silence
    from compile_inspect.tour.guide import Guide
    from compile_inspect.variants.base import one_line

    guide = guide or Guide.silent()
    device = device_of(target, guide)
    target = target or guide.model("mlp")
    name, modes = model_name(target), torch_private.mode_settings()
    where = "GPU" if device == "cuda" else "CPU"
    if guide.machine.inductor:  # otherwise nothing will tell
        guide.guess(f"What does reduce-overhead do with {name} on this {where}?", _CHOICES)
    with torch.no_grad():
        with silence():
            eager = _call_time(target, target.function, device).median
            steady = is_steady(target)
        runs: list[ModeRun] = []
        codes: dict[str, GeneratedCode] = {}
        for mode, settings in sorted(modes.items(), key=lambda item: item[0] != "default"):
            told = tuple(f"{key} = {value}" for key, value in settings.items())
            reason = _reason_to_leave_out(mode, settings, runs, guide)
            if reason:
                if reason not in guide.notes:
                    guide.note(reason)
                runs.append(ModeRun(mode, told, left_out=reason))
                continue
            try:
                with guide.working(f"compiling in mode {mode}"):
                    run, codes[mode] = _run(target, mode, device, steady=steady)
            except Exception as error:  # whatever a compiler raises is what this mode does with this model
                reason = f"mode {mode} failed: {one_line(error)}"
                guide.note(reason)
                runs.append(ModeRun(mode, told, left_out=reason, failed=True))
                continue
            same, changed = codes.get("default", codes[mode]).compared(codes[mode])
            runs.append(replace(run, settings=told, same_kernels=same, changed_lines=changed))
    torch_private.forget_compiled_code()
    comparison = ModeComparison(name, where, eager, tuple(runs))
    _show(comparison, guide)
    return comparison


def _reason_to_leave_out(mode: str, settings: Mapping[str, Any], runs: list[ModeRun], guide: Guide) -> str:
    if not guide.machine.inductor:
        return guide.machine.lacking
    slow = next((run for run in runs if "autotune" in run.mode and run.build_seconds > _MOST_SECONDS), None)
    if slow is not None and settings.get("max_autotune"):
        return f"{mode}: the search of {slow.mode} took {seconds(slow.build_seconds)} and would be made again"
    return ""


def _call_time(target: Target, function: Callable[..., Any], device: str) -> CallTime:
    """How long a call takes; what the calls change is put back."""
    taken: CallTime = result_of(target, lambda *args, **kwargs: call_time(lambda: function(*args, **kwargs), device))
    return taken


def _run(target: Target, mode: str, device: str, *, steady: bool) -> tuple[ModeRun, GeneratedCode]:
    """One mode, and the code it gave."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.torch_private.tour import collect_torch_messages

    torch_private.forget_compiled_code()
    compiled: Any = torch.compile(target.function, mode=mode)

    def first(*args: Any, **kwargs: Any) -> float:
        started = perf_counter()
        compiled(*args, **kwargs)
        wait(device)
        return perf_counter() - started

    with silence():
        expected = result_of(target)
        with collect_torch_messages() as said, record() as recording:
            build = result_of(target, first)
            for _ in range(CALLS_MADE - 1):
                result = result_of(target, compiled)
            apart = difference(result, expected)  # now: the next call may write over the result of this one
        with torch_private.suppressed_compiler_output():
            called = _call_time(target, compiled, device)
    found = recording.inspection
    skipped = [event.reason for event in found.cuda_graphs if event.outcome is CudaGraphOutcome.SKIPPED]
    kinds = [kernel.kind.name for _, kernel in found.kernels()]
    run = ModeRun(
        mode,
        build_seconds=build,
        call_seconds=called.median,
        call_interval=None if called.low is None or called.high is None else (called.low, called.high),
        difference=apart if steady else None,
        generated=sum(kind != "EXTERN" for kind in kinds),
        library_calls=kinds.count("EXTERN"),
        cuda_graphs=_became(found),
        skipped=skipped[0] if skipped else "",
        said=tuple(dict.fromkeys(said)),
    )
    return run, GeneratedCode.of("\n".join(lowering.code for lowering in found.lowerings))


def _became(found: Inspection) -> CudaGraphOutcome | None:
    """How far a wish for CUDA graphs came: what torch means to use is not yet recorded, and may be skipped in the end."""
    outcomes = {event.outcome for event in found.cuda_graphs}
    order = (CudaGraphOutcome.RECORDED, CudaGraphOutcome.SKIPPED, CudaGraphOutcome.USED, CudaGraphOutcome.NO_EFFECT)
    return next((outcome for outcome in order if outcome in outcomes), None)


def _show(comparison: ModeComparison, guide: Guide) -> None:
    guide.table(
        "Modes, and the settings of Inductor that each changes",
        ["Mode", "Changes"],
        [[run.mode, ", ".join(run.settings) or "nothing"] for run in comparison.runs],
    )
    rows = [["no compile", "-", seconds(comparison.eager_seconds), "-", "-", "-", "-"]]
    for run in comparison.runs:
        if run.left_out:
            rows.append([run.mode, "-", "-", "-", "-", "an error" if run.failed else "left out", "-"])
            continue
        graphs = run.cuda_graphs.value.partition(":")[0] if run.cuda_graphs else "not asked for"
        if run.cuda_graphs is CudaGraphOutcome.USED:
            graphs = "asked for, none recorded"
        effect = "-" if run.mode == "default" else run.effect.value
        kernels = f"{run.generated} + {run.library_calls}"
        apart = "-" if run.difference is None else f"{run.difference:.1g}"
        figures = [seconds(run.build_seconds), seconds(run.call_seconds), apart, kernels]
        rows.append([run.mode, *figures, effect, graphs])
    columns = ["Mode", ">Build", ">Call", ">From eager", ">Kernels + calls", "Effect here", "CUDA graphs"]
    guide.table(f"{comparison.model} in each mode", columns, rows)
    if not comparison.ran:
        return
    guide.say(
        "Machine code is kept on disk under the text of the kernel, so a mode that writes the code of an earlier one "
        "does not wait for the compiler again: compare builds only where the code differs."
    )
    chosen = next((run for run in comparison.runs if run.mode == "reduce-overhead"), None)
    verdict = None if chosen is None else chosen.verdict
    if verdict is not None:
        guide.settle(verdict)
