"""A variant that freezes everything and compiles nothing: the traced graph, run as it is."""

from __future__ import annotations

from dataclasses import dataclass

from compile_inspect.variants import Prepared, Task, Variant
from compile_inspect.variants.inductor import from_flat
from compile_inspect.variants.program import traced


@dataclass(frozen=True)
class FrozenGraph(Variant):
    """The cheapest variant that is wrong whenever the guard lets a change pass."""

    @property
    def name(self) -> str:
        return "frozen-graph"

    def build(self, task: Task) -> Prepared:
        program, graph, _ = traced(task)
        return from_flat(self, program, lambda tensors: list(graph(*tensors)))
