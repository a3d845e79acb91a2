"""A topic of the tour: every mode of torch.compile on one model, what it changes and what effect that has here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.tour.calls import call_time, difference, is_deterministic, model_name, result_of, synchronize
from compile_inspect.tour.intervals import CallTime
from compile_inspect.tour.topics.call_outcomes import device_of
from compile_inspect.tour.topics.generated_code import GeneratedCode
from compile_inspect.tour.topics.mode_comparison import CALLS_PER_MODE, ModeComparison, ModeRun
from compile_inspect.wording.quantities import seconds

if TYPE_CHECKING:
    from compile_inspect.records import Inspection
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

_MAX_AUTOTUNE_SECONDS = 20.0
"""A max-autotune build that took longer is not repeated."""
_CHOICES = ("it generates the same kernels as default", "it records CUDA graphs", "it raises an error")


def run_mode_comparison(target: Target | None = None, *, guide: Guide | None = None) -> ModeComparison:
    """Compile a model in every mode and record the settings, the generated code and the times.

    The default target is the tour's MLP.
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
    if guide.machine.inductor:  # otherwise no run answers it
        guide.ask(f"What does reduce-overhead do with {name} on this {where}?", _CHOICES)
    with torch.no_grad():
        with silence():
            eager = _call_time(target, target.function, device).median
            deterministic = is_deterministic(target)
        runs: list[ModeRun] = []
        codes: dict[str, GeneratedCode] = {}
        for mode, settings in sorted(modes.items(), key=lambda item: item[0] != "default"):
            changed_settings = tuple(f"{key} = {value}" for key, value in settings.items())
            reason = _reason_to_leave_out(mode, settings, runs, guide)
            if reason:
                if reason not in guide.notes:
                    guide.note(reason)
                runs.append(ModeRun(mode, changed_settings, left_out=reason))
                continue
            try:
                with guide.working(f"compiling in mode {mode}"):
                    run, codes[mode] = _run(target, mode, device, deterministic=deterministic)
            except Exception as error:  # an exception is the outcome of this mode
                reason = f"mode {mode} failed: {one_line(error)}"
                guide.note(reason)
                runs.append(ModeRun(mode, changed_settings, left_out=reason, failed=True))
                continue
            same, changed = codes.get("default", codes[mode]).compare(codes[mode])
            runs.append(replace(run, settings=changed_settings, same_kernels=same, changed_lines=changed))
    torch_private.forget_compiled_code()
    comparison = ModeComparison(name, where, eager, tuple(runs))
    _show(comparison, guide)
    return comparison


def _reason_to_leave_out(mode: str, settings: Mapping[str, Any], runs: list[ModeRun], guide: Guide) -> str:
    if not guide.machine.inductor:
        return guide.machine.missing_requirement
    slow = next((run for run in runs if "autotune" in run.mode and run.build_seconds > _MAX_AUTOTUNE_SECONDS), None)
    if slow is not None and settings.get("max_autotune"):
        return f"{mode} is left out: it would repeat the autotuning of {slow.mode}, which took {seconds(slow.build_seconds)}"
    return ""


def _call_time(target: Target, function: Callable[..., Any], device: str) -> CallTime:
    """The time of a call; its side effects are undone."""
    time: CallTime = result_of(target, lambda *args, **kwargs: call_time(lambda: function(*args, **kwargs), device))
    return time


def _run(target: Target, mode: str, device: str, *, deterministic: bool) -> tuple[ModeRun, GeneratedCode]:
    """Run one mode; return its results and its code."""
    import torch

    from compile_inspect import torch_private
    from compile_inspect.capture.recorder import record
    from compile_inspect.silence import silence
    from compile_inspect.torch_private.tour import collect_torch_messages

    torch_private.forget_compiled_code()
    compiled: Any = torch.compile(target.function, mode=mode)

    def first_call(*args: Any, **kwargs: Any) -> float:
        start = perf_counter()
        compiled(*args, **kwargs)
        synchronize(device)
        return perf_counter() - start

    with silence():
        expected = result_of(target)
        with collect_torch_messages() as messages, record() as recording:
            build = result_of(target, first_call)
            for _ in range(CALLS_PER_MODE - 1):
                result = result_of(target, compiled)
            deviation = difference(result, expected)  # before the next call, which may overwrite this result
        with torch_private.suppressed_compiler_output():
            time = _call_time(target, compiled, device)
    inspection = recording.inspection
    skip_reasons = [event.reason for event in inspection.cuda_graphs if event.outcome is CudaGraphOutcome.SKIPPED]
    kinds = [kernel.kind.name for _, kernel in inspection.kernels()]
    run = ModeRun(
        mode,
        build_seconds=build,
        call_seconds=time.median,
        call_interval=None if time.low is None or time.high is None else (time.low, time.high),
        difference=deviation if deterministic else None,
        generated=sum(kind != "EXTERN" for kind in kinds),
        library_calls=kinds.count("EXTERN"),
        cuda_graphs=_cuda_graph_outcome(inspection),
        skip_reason=skip_reasons[0] if skip_reasons else "",
        messages=tuple(dict.fromkeys(messages)),
    )
    return run, GeneratedCode.of("\n".join(lowering.code for lowering in inspection.lowerings))


def _cuda_graph_outcome(inspection: Inspection) -> CudaGraphOutcome | None:
    """The furthest outcome of a request for CUDA graphs: torch may skip a graph that it first planned to use."""
    outcomes = {event.outcome for event in inspection.cuda_graphs}
    order = (CudaGraphOutcome.RECORDED, CudaGraphOutcome.SKIPPED, CudaGraphOutcome.USED, CudaGraphOutcome.NO_EFFECT)
    return next((outcome for outcome in order if outcome in outcomes), None)


def _show(comparison: ModeComparison, guide: Guide) -> None:
    guide.table(
        "Modes and the Inductor settings that each changes",
        ["Mode", "Changes"],
        [[run.mode, ", ".join(run.settings) or "nothing"] for run in comparison.runs],
    )
    rows = [["no torch.compile", "-", seconds(comparison.eager_seconds), "-", "-", "-", "-"]]
    for run in comparison.runs:
        if run.left_out:
            rows.append([run.mode, "-", "-", "-", "-", "error" if run.failed else "left out", "-"])
            continue
        graphs = run.cuda_graphs.value.partition(":")[0] if run.cuda_graphs else "not requested"
        if run.cuda_graphs is CudaGraphOutcome.USED:
            graphs = "requested, none recorded"
        effect = "-" if run.mode == "default" else run.effect.value
        kernels = f"{run.generated} + {run.library_calls}"
        deviation = "-" if run.difference is None else f"{run.difference:.1g}"
        figures = [seconds(run.build_seconds), seconds(run.call_seconds), deviation, kernels]
        rows.append([run.mode, *figures, effect, graphs])
    columns = ["Mode", ">Build", ">Call", ">Max difference", ">Kernels + calls", "Effect here", "CUDA graphs"]
    guide.table(f"{comparison.model} in each mode", columns, rows)
    if not comparison.completed:
        return
    guide.remark(
        "Compiled kernels are cached on disk by their source, so a mode that generates the same kernels as an earlier mode "
        "does not wait for the compiler again. Compare build times only where the code differs."
    )
    reduce_overhead = next((run for run in comparison.runs if run.mode == "reduce-overhead"), None)
    correct = None if reduce_overhead is None else reduce_overhead.correct_choice
    if correct is not None:
        guide.reveal(correct)
