"""The results of the topic on modes: one mode, all modes, and the conclusions from their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.tour.intervals import CallTime
from compile_inspect.tour.topics.generated_code import CALLS
from compile_inspect.wording.quantities import count, seconds

CALLS_PER_MODE = 3
"""Calls to record: torch records a CUDA graph at the second or third call."""


class Effect(Enum):
    """The effect of a mode here, compared with the default."""

    NONE = "none: same code"
    WRAPPER = "same kernels, different wrapper code"
    KERNELS = "different kernels or library calls"
    CUDA_GRAPHS = "runs as CUDA graphs"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class ModeRun:
    """One mode on one model; `left_out` says why it was not run."""

    mode: str
    settings: tuple[str, ...] = ()
    build_seconds: float = 0.0
    call_seconds: float = 0.0
    call_interval: tuple[float, float] | None = None
    """The ends of the 95 % interval of a call's median; without it, times are not compared."""
    difference: float | None = 0.0
    """From eager; None for a model that draws random numbers, which may differ in compiled code."""
    generated: int = 0
    library_calls: int = 0
    same_kernels: bool = False
    """Whether Inductor generated the same kernels and library calls as in the default mode."""
    changed_lines: tuple[str, ...] = ()
    """Lines of the wrapper code that differ between this mode and the default."""
    cuda_graphs: CudaGraphOutcome | None = None
    """The outcome of the mode's request for CUDA graphs, if it makes one."""
    skip_reason: str = ""
    """Why torch skipped some or all CUDA graphs."""
    messages: tuple[str, ...] = ()
    """Warnings and log messages of torch in the first calls."""
    left_out: str = ""
    failed: bool = False
    """Whether it was left out because it raised an error."""

    @property
    def effect(self) -> Effect:
        """The effect of the mode here, compared with the default."""
        if self.left_out:
            return Effect.LEFT_OUT
        if self.cuda_graphs is CudaGraphOutcome.RECORDED:
            return Effect.CUDA_GRAPHS
        if not self.same_kernels:
            return Effect.KERNELS
        return Effect.WRAPPER if self.changed_lines else Effect.NONE

    @property
    def call(self) -> CallTime:
        """The time of a call."""
        return CallTime(self.call_seconds, *(self.call_interval or (None, None)))

    @property
    def correct_choice(self) -> int | None:
        """The quiz choice that it shows to be correct; None for different kernels without CUDA graphs."""
        known = {Effect.NONE: 0, Effect.WRAPPER: 0, Effect.CUDA_GRAPHS: 1}
        return 2 if self.failed else known.get(self.effect)

    @property
    def launches(self) -> tuple[int, int]:
        """Generated kernels and library calls."""
        return self.generated, self.library_calls

    @property
    def replacement(self) -> str:
        """A different call than in the default mode, if the code shows one: `, with extern_kernels.bias_addmm instead`."""
        if self.same_kernels:
            return ""
        names = [line.partition("(")[0].rpartition(" ")[2] for line in self.changed_lines]
        called = [name for name in names if CALLS.search(name)]
        by_default, own_calls = called[:1], called[-1:]
        return f", with {own_calls[0]} instead" if own_calls and own_calls != by_default else ""


@dataclass(frozen=True)
class ModeComparison:
    """The measurements of `run_mode_comparison`; `eager_seconds` is the time of a call without torch.compile."""

    model: str
    device: str
    eager_seconds: float
    runs: tuple[ModeRun, ...]

    @property
    def completed(self) -> tuple[ModeRun, ...]:
        """The modes that were run, the default first."""
        return tuple(run for run in self.runs if not run.left_out)

    def answer(self) -> tuple[str, ...]:
        """What the modes do on this device, with the numbers of this run."""
        if not self.completed or self.completed[0].mode != "default":
            return ()
        default, *others = self.completed
        sentences = []
        same_kernel_runs = [run for run in others if run.effect in (Effect.NONE, Effect.WRAPPER)]
        if same_kernel_runs:
            sentences.append(
                f"On this {self.device} {_listed(run.mode for run in same_kernel_runs)} generated the same kernels as "
                f"{default.mode}; "
                f"calls took {_listed(seconds(run.call_seconds) for run in same_kernel_runs)}, and "
                f"{seconds(default.call_seconds)} in {default.mode}"
                f"{_explain_differences(default, same_kernel_runs)}."
            )
        different_wrappers = [run for run in same_kernel_runs if run.changed_lines]
        if different_wrappers:
            sentences.append(
                f"In the wrapper code, {_listed(run.mode for run in different_wrappers)} changed "
                f"{count(max(len(run.changed_lines) for run in different_wrappers), 'line')}, such as "
                f"`{different_wrappers[0].changed_lines[0]}`."
            )
        for run in others:
            if run not in same_kernel_runs:
                sentences.append(
                    f"{run.mode} made a difference ({run.effect.value}): {count(run.generated, 'generated kernel')} and "
                    f"{count(run.library_calls, 'library call')}, compared with {default.generated} and "
                    f"{default.library_calls} in {default.mode}"
                    f"{run.replacement if run.launches == default.launches else ''}; "
                    f"a call took {seconds(run.call_seconds)}, compared with {seconds(default.call_seconds)}"
                    f"{'' if _differ(run.call, default.call, self.spread) else ' (no difference beyond the noise)'}."
                )
        sentences += _about_cuda_graphs(others)
        differing = [run for run in self.completed if run not in same_kernel_runs]
        sentences.append(
            f"{self._fastest(differing)}. Without torch.compile a call took {seconds(self.eager_seconds)}. "
            f"Builds took {_listed(f'{seconds(run.build_seconds)} ({run.mode})' for run in differing)}, each measured once."
        )
        return tuple(sentences)

    @property
    def spread(self) -> float:
        """The ratio between the slowest and fastest calls of identical code: smaller differences may be noise."""
        times = [run.call_seconds for run in self.completed if run.effect is Effect.NONE and run.call_seconds > 0]
        return max(times) / min(times) if len(times) > 1 else 1.0

    def _fastest(self, differing: list[ModeRun]) -> str:
        """Which of the modes with different code is fastest, if the run shows it."""
        if len(differing) == 1:
            return f"A call of {self.model} took {seconds(differing[0].call_seconds)} in {differing[0].mode}"
        for run in differing:
            if all(run.call.is_faster_than(other.call, spread=self.spread) for other in differing if other is not run):
                return f"Of the modes that differ, {run.mode} had the fastest call of {self.model}, {seconds(run.call_seconds)}"
        times = _listed(f"{seconds(run.call_seconds)} ({run.mode})" for run in differing)
        return f"This run does not show which of the modes that differ is fastest: calls of {self.model} took {times}"


def _about_cuda_graphs(runs: list[ModeRun]) -> list[str]:
    """The outcome of requests for CUDA graphs, and torch's messages about them."""
    sentences = []
    unfulfilled = [run for run in runs if run.cuda_graphs is CudaGraphOutcome.NO_EFFECT]
    silent = [run.mode for run in unfulfilled if not run.messages]
    if silent:
        sentences.append(f"{_listed(silent)} requested CUDA graphs and did not get them, without an error or a warning.")
    sentences += [
        f"{run.mode} requested CUDA graphs and did not get them; the first message was: {run.messages[0].rstrip('.')}."
        for run in unfulfilled
        if run.messages
    ]
    for run in runs:
        why = run.skip_reason.rstrip(".") or "torch gave no reason"
        if run.cuda_graphs is CudaGraphOutcome.SKIPPED:
            sentences.append(f"{run.mode} requested CUDA graphs, and torch skipped them: {why}.")
        elif run.cuda_graphs is CudaGraphOutcome.USED:
            sentences.append(f"{run.mode} requested CUDA graphs, and none was recorded in {CALLS_PER_MODE} calls.")
        elif run.cuda_graphs is CudaGraphOutcome.RECORDED and run.skip_reason:
            sentences.append(f"With {run.mode}, some graphs were recorded as CUDA graphs and some were skipped: {why}.")
    return sentences


def _explain_differences(default: ModeRun, same_kernel_runs: list[ModeRun]) -> str:
    """What the times of the same kernels show; for identical code, only the noise."""
    if all(run.effect is Effect.NONE for run in same_kernel_runs):
        return ". Their code is identical, so this is the noise of the measurement"
    if not any(_differ(run.call, default.call, 1.0) for run in same_kernel_runs):
        return ": no difference beyond the noise"
    return ". This run does not show whether the wrapper code or noise causes the difference"


def _differ(one: CallTime, other: CallTime, spread: float) -> bool:
    return one.is_faster_than(other, spread=spread) or other.is_faster_than(one, spread=spread)


def _listed(items: Iterable[str]) -> str:
    *first, last = list(items)
    return f"{', '.join(first)} and {last}" if first else last
