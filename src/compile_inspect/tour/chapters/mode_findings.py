"""What the chapter on modes has found: one mode, all of them, and the sentences that follow from their figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from compile_inspect.records.runtime import CudaGraphOutcome
from compile_inspect.tour.chapters.generated_code import CALLS
from compile_inspect.tour.intervals import CallTime
from compile_inspect.wording.quantities import count, seconds

CALLS_MADE = 3
"""Calls that are recorded: a CUDA graph is made at the second or third."""


class Effect(Enum):
    """What a mode did here that the default does not do."""

    NONE = "none: the same code"
    WRAPPER = "the same kernels, other code around them"
    KERNELS = "other kernels or library calls"
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
    """The ends of the 95 % interval of a call's median; None: nothing is claimed of its time."""
    difference: float | None = 0.0
    """From eager; None where the model draws random numbers, which compiled code may draw otherwise."""
    generated: int = 0
    library_calls: int = 0
    same_kernels: bool = False
    """Whether Inductor wrote the kernels that it writes by default, and calls the same libraries."""
    changed_lines: tuple[str, ...] = ()
    """Lines of the code around the kernels that only one of this mode and the default has."""
    cuda_graphs: CudaGraphOutcome | None = None
    """What became of a wish for CUDA graphs, where the mode has it."""
    skipped: str = ""
    """Why torch did not record some of the graphs, or any."""
    said: tuple[str, ...] = ()
    """Warnings, and what torch's loggers said, in the first calls."""
    left_out: str = ""
    failed: bool = False
    """Whether it was left out because it raised an error."""

    @property
    def effect(self) -> Effect:
        """What the mode did here that the default does not do."""
        if self.left_out:
            return Effect.LEFT_OUT
        if self.cuda_graphs is CudaGraphOutcome.RECORDED:
            return Effect.CUDA_GRAPHS
        if not self.same_kernels:
            return Effect.KERNELS
        return Effect.WRAPPER if self.changed_lines else Effect.NONE

    @property
    def call(self) -> CallTime:
        """How long a call took."""
        return CallTime(self.call_seconds, *(self.call_interval or (None, None)))

    @property
    def verdict(self) -> int | None:
        """Which choice of the quiz it has shown to be right; None for other kernels without CUDA graphs."""
        known = {Effect.NONE: 0, Effect.WRAPPER: 0, Effect.CUDA_GRAPHS: 1}
        return 2 if self.failed else known.get(self.effect)

    @property
    def launches(self) -> tuple[int, int]:
        """Generated kernels and library calls."""
        return self.generated, self.library_calls

    @property
    def instead(self) -> str:
        """What is called otherwise than by default, where the code shows it: `, with extern_kernels.bias_addmm instead`."""
        if self.same_kernels:
            return ""
        names = [line.partition("(")[0].rpartition(" ")[2] for line in self.changed_lines]
        called = [name for name in names if CALLS.search(name)]
        by_default, here = called[:1], called[-1:]
        return f", with {here[0]} instead" if here and here != by_default else ""


@dataclass(frozen=True)
class ModeComparison:
    """What `run_mode_comparison` has measured; `eager_seconds` is a call of the model as it is."""

    model: str
    device: str
    eager_seconds: float
    runs: tuple[ModeRun, ...]

    @property
    def ran(self) -> tuple[ModeRun, ...]:
        """The modes that were run, the default first."""
        return tuple(run for run in self.runs if not run.left_out)

    def answer(self) -> tuple[str, ...]:
        """What the modes do on this device, in figures of this run."""
        if not self.ran or self.ran[0].mode != "default":
            return ()
        default, *others = self.ran
        told = []
        idle = [run for run in others if run.effect in (Effect.NONE, Effect.WRAPPER)]
        if idle:
            told.append(
                f"On this {self.device} {_listed(run.mode for run in idle)} gave the kernels of {default.mode} again; "
                f"calls took {_listed(seconds(run.call_seconds) for run in idle)}, by default {seconds(default.call_seconds)}"
                f"{_what_that_is(default, idle)}."
            )
        around = [run for run in idle if run.changed_lines]
        if around:
            told.append(
                f"Around the kernels {_listed(run.mode for run in around)} changed "
                f"{count(max(len(run.changed_lines) for run in around), 'line')} of the generated code, such as "
                f"`{around[0].changed_lines[0]}`."
            )
        for run in others:
            if run not in idle:
                told.append(
                    f"{run.mode} made a difference ({run.effect.value}): {count(run.generated, 'generated kernel')} and "
                    f"{count(run.library_calls, 'library call')}, by default {default.generated} and {default.library_calls}"
                    f"{run.instead if run.launches == default.launches else ''}; "
                    f"a call took {seconds(run.call_seconds)}, by default {seconds(default.call_seconds)}"
                    f"{'' if _differ(run.call, default.call, self.spread) else ', which is no difference beyond the noise'}."
                )
        told += _about_cuda_graphs(others)
        differing = [run for run in self.ran if run not in idle]
        told.append(
            f"{self._quickest(differing)}, where the model as it is takes {seconds(self.eager_seconds)}; "
            f"builds took {_listed(f'{seconds(run.build_seconds)} ({run.mode})' for run in differing)}, each measured once."
        )
        return tuple(told)

    @property
    def spread(self) -> float:
        """The factor by which calls of the very same code came out apart: what is smaller may be the machine's doing."""
        same = [run.call_seconds for run in self.ran if run.effect is Effect.NONE and run.call_seconds > 0]
        return max(same) / min(same) if len(same) > 1 else 1.0

    def _quickest(self, differing: list[ModeRun]) -> str:
        """Which of the modes with code of their own is quickest, if the run shows it."""
        if len(differing) == 1:
            return f"A call of {self.model} took {seconds(differing[0].call_seconds)} by default"
        for run in differing:
            if all(run.call.quicker_than(other.call, spread=self.spread) for other in differing if other is not run):
                return f"Of those that differ, {run.mode} had the quickest call of {self.model}, {seconds(run.call_seconds)}"
        times = _listed(f"{seconds(run.call_seconds)} ({run.mode})" for run in differing)
        return f"Which of those that differ is the quickest this run does not show: calls of {self.model} took {times}"


def _about_cuda_graphs(runs: list[ModeRun]) -> list[str]:
    """What became of the wish for CUDA graphs, and what torch said about it."""
    told = []
    unmet = [run for run in runs if run.cuda_graphs is CudaGraphOutcome.NO_EFFECT]
    silent = [run.mode for run in unmet if not run.said]
    if silent:
        told.append(f"{_listed(silent)} asked for CUDA graphs and did not get them, without an error or a warning.")
    told += [
        f"{run.mode} asked for CUDA graphs and did not get them; what was said first: {run.said[0].rstrip('.')}."
        for run in unmet
        if run.said
    ]
    for run in runs:
        why = run.skipped.rstrip(".") or "torch gave no reason"
        if run.cuda_graphs is CudaGraphOutcome.SKIPPED:
            told.append(f"{run.mode} asked for CUDA graphs, and torch skipped them: {why}.")
        elif run.cuda_graphs is CudaGraphOutcome.USED:
            told.append(f"{run.mode} asked for CUDA graphs, and none was recorded in {CALLS_MADE} calls.")
        elif run.cuda_graphs is CudaGraphOutcome.RECORDED and run.skipped:
            told.append(f"With {run.mode} some graphs were recorded as CUDA graphs, and some skipped: {why}.")
    return told


def _what_that_is(default: ModeRun, idle: list[ModeRun]) -> str:
    """What the times of the same kernels say: about the code nothing, where all of it is the same."""
    if all(run.effect is Effect.NONE for run in idle):
        return ": of the very same code, so that is the spread of the measurement"
    if not any(_differ(run.call, default.call, 1.0) for run in idle):
        return ": no difference beyond the noise"
    return ": whether the lines around the kernels make that difference, or the machine, this run does not show"


def _differ(one: CallTime, other: CallTime, spread: float) -> bool:
    return one.quicker_than(other, spread=spread) or other.quicker_than(one, spread=spread)


def _listed(items: Iterable[str]) -> str:
    *first, last = list(items)
    return f"{', '.join(first)} and {last}" if first else last
