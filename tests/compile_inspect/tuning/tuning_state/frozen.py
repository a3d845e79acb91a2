"""A variant that freezes everything and compiles nothing: the traced graph, run as it is."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.variants import Prepared, Task, Variant
from compile_inspect.variants.captured_program import trace_task
from compile_inspect.variants.inductor import prepare_flat


@dataclass(frozen=True)
class FrozenGraph(Variant):
    """The cheapest variant that is wrong whenever the guard lets a change pass."""

    @property
    def name(self) -> str:
        return "frozen-graph"

    def build(self, task: Task) -> Prepared:
        program, graph, _ = trace_task(task)
        return prepare_flat(self, program, lambda tensors: list(graph(*tensors)))
