"""Compile time by stage, from torch's own timers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from compile_inspect.records import Phase


class Stage(Enum):
    """The stages that a first call goes through."""

    DYNAMO = "Dynamo: bytecode to graph, guards"
    AUTOGRAD = "AOTAutograd: a graph without in-place changes, and its backward"
    INDUCTOR = "Inductor: passes, fusion, code"
    COMPILER = "Compiler: code to machine code"

    @property
    def short(self) -> str:
        """The name without what it does."""
        return self.value.partition(":")[0]


_ENTERED_BY = (
    (Stage.COMPILER, ("compile_file", "async_compile", "triton_compile", "CachingAutotuner", "precompile")),
    (Stage.INDUCTOR, ("inductor", "_recursive_", "compile_fx", "pass.", "fx_codegen", "GraphLowering")),
    (Stage.AUTOGRAD, ("backend_compile", "create_aot_dispatcher_function", "aot_")),
)


def time_by_stage(phases: Iterable[Phase]) -> dict[Stage, float]:
    """Seconds of each stage, each second counted once; helper threads, for which the compilation waits, are left out.

    >>> found = time_by_stage([Phase("0/0", "dynamo", 0.0, 3.0, 0, 1.0), Phase("0/0", "compile_file", 1.0, 2.0, 1, 2.0)])
    >>> {stage.short: spent for stage, spent in found.items()}
    {'Dynamo': 1.0, 'AOTAutograd': 0.0, 'Inductor': 0.0, 'Compiler': 2.0}
    """
    found = dict.fromkeys(Stage, 0.0)
    open_phases: list[tuple[int, Stage]] = []
    for phase in sorted(phases, key=lambda phase: (phase.start, phase.depth)):
        if phase.thread:
            continue
        while open_phases and open_phases[-1][0] >= phase.depth:
            open_phases.pop()
        around = open_phases[-1][1] if open_phases else Stage.DYNAMO
        stage = next((stage for stage, starts in _ENTERED_BY if phase.name.startswith(starts)), around)
        found[stage] += phase.own_seconds
        open_phases.append((phase.depth, stage))
    return found
