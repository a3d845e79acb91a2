"""The stages of torch.compile one after the other, and the graphs that pass between them."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compile_inspect.agreement.inputs import clone_tensor
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import observe
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.capture import torch_private
from compile_inspect.records.agreement import BlameStage
from compile_inspect.variants import Step, Task
from compile_inspect.variants.compiled import Compiled

STAGES = (
    ("eager", BlameStage.DYNAMO),
    ("aot_eager", BlameStage.AOT_AUTOGRAD),
    ("aot_eager_decomp_partition", BlameStage.DECOMPOSITIONS),
    ("inductor", BlameStage.INDUCTOR),
)


@dataclass
class CapturedGraph:
    """A graph as Dynamo gives it to a backend, and the tensors it was called with."""

    graph: Any
    inputs: list[Any]


def compiled_with(task: Task, backend: str | Callable[..., Any], **choices: Any) -> Callable[..., Any]:
    """torch.compile of a task's function, apart from what was compiled of it before.

    Dynamo counts everything compiled from one piece of code, whatever the backend, and after eight runs it in eager
    mode without a word: that would look like agreement.
    """
    import torch

    if "isolate_recompiles" in python_inspect.signature(torch.compile).parameters:
        choices["isolate_recompiles"] = True
    compiled: Callable[..., Any] = torch.compile(task.function, backend=backend, **choices)
    return compiled


def stages_of(variant: Compiled) -> list[tuple[str, BlameStage]]:
    """The backends to try in order, up to the variant's own."""
    names = [name for name, _ in STAGES]
    if variant.backend in names:
        return list(STAGES[: names.index(variant.backend) + 1])
    return [STAGES[0], (variant.backend, BlameStage.BACKEND)]


def wrong_stage(reference: Reference, variant: Compiled, point: Point, task: Task) -> BlameStage:
    """The first stage at which the result is wrong, with the function compiled at the example and run at the point."""
    stages = stages_of(variant)
    for backend, stage in stages[:-1]:
        if is_wrong(reference, task, backend, variant, point):
            return stage
    return stages[-1][1]


def is_wrong(reference: Reference, task: Task, backend: str, variant: Compiled, point: Point) -> bool:
    """Whether one backend gives a wrong result at a point."""
    compiled = compiled_with(task, backend, dynamic=variant.dynamic, fullgraph=variant.fullgraph)

    def run(*args: Any, **kwargs: Any) -> Step:
        return task.run(compiled, args, kwargs)

    if point is not reference.points[0]:
        observe(task, run, reference.points[0].inputs, reference.points[0].seed)
    seen = observe(task, run, point.inputs, point.seed)
    return bool(judge(seen, reference.bystanders(point), exact_kernels=backend == "eager").differences)


def captured_graphs(task: Task, point: Point) -> list[CapturedGraph]:
    """The graphs Dynamo makes of a function at a point, each with its inputs."""
    found: list[CapturedGraph] = []

    def backend(graph: Any, example: Any) -> Callable[..., Any]:
        captured = CapturedGraph(graph, [])
        found.append(captured)

        def call(*inputs: Any) -> Any:
            captured.inputs = [clone_tensor(item) if torch_private.is_tensor(item) else item for item in inputs]
            return graph.forward(*inputs)

        return call

    compiled = compiled_with(task, backend)
    observe(task, lambda *args, **kwargs: task.run(compiled, args, kwargs), point.inputs, point.seed)
    return [item for item in found if item.inputs]
