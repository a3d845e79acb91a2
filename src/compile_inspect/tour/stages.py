"""Compile time by stage, from torch's own timers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from compile_inspect.records import Phase


class Stage(Enum):
    """The stages of a first call."""

    DYNAMO = "Dynamo: bytecode to graph, guards"
    AUTOGRAD = "AOTAutograd: functional graph and its backward"
    INDUCTOR = "Inductor: passes, fusion, code generation"
    COMPILER = "Compiler: generated code to machine code"

    @property
    def short(self) -> str:
        """The name without the description."""
        return self.value.partition(":")[0]


_PHASE_PREFIXES = (
    (Stage.COMPILER, ("compile_file", "async_compile", "triton_compile", "CachingAutotuner", "precompile")),
    (Stage.INDUCTOR, ("inductor", "_recursive_", "compile_fx", "pass.", "fx_codegen", "GraphLowering")),
    (Stage.AUTOGRAD, ("backend_compile", "create_aot_dispatcher_function", "aot_")),
)


def time_by_stage(phases: Iterable[Phase]) -> dict[Stage, float]:
    """Seconds of each stage, each second counted once; helper threads are left out, as the main thread waits for them.

    >>> times = time_by_stage([Phase("0/0", "dynamo", 0.0, 3.0, 0, 1.0), Phase("0/0", "compile_file", 1.0, 2.0, 1, 2.0)])
    >>> {stage.short: spent for stage, spent in times.items()}
    {'Dynamo': 1.0, 'AOTAutograd': 0.0, 'Inductor': 0.0, 'Compiler': 2.0}
    """
    totals = dict.fromkeys(Stage, 0.0)
    open_phases: list[tuple[int, Stage]] = []
    for phase in sorted(phases, key=lambda phase: (phase.start, phase.depth)):
        if phase.thread:
            continue
        while open_phases and open_phases[-1][0] >= phase.depth:
            open_phases.pop()
        enclosing = open_phases[-1][1] if open_phases else Stage.DYNAMO
        stage = next((stage for stage, prefixes in _PHASE_PREFIXES if phase.name.startswith(prefixes)), enclosing)
        totals[stage] += phase.own_seconds
        open_phases.append((phase.depth, stage))
    return totals
