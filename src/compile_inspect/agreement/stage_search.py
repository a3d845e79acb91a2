"""Run the stages of torch.compile one after the other to find the first that gives a wrong result, or raises."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.inputs import clone_inputs, clone_tensor
from compile_inspect.agreement.judgment import judge
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.agreement.run_outcome import RunOutcome, observe, preserve_state, seed_generators
from compile_inspect.records.agreement import BlameStage
from compile_inspect.variants import Step, Task
from compile_inspect.variants.compiled import Compiled

STAGES = (
    ("eager", BlameStage.DYNAMO),
    ("aot_eager", BlameStage.AOT_AUTOGRAD),
    ("aot_eager_decomp_partition", BlameStage.DECOMPOSITIONS),
    ("inductor", BlameStage.INDUCTOR),
)


@dataclass(frozen=True)
class StageTrial:
    """The function run up to one stage, at the point where the variant is wrong."""

    backend: str
    stage: BlameStage
    wrong: bool
    error: str | None = None
    """The exception in one line, where it raises."""
    graph: str = ""
    """What ran instead of `torch.compile` with the backend, where that is another graph."""

    def __str__(self) -> str:
        outcome = f"raises {self.error}" if self.wrong and self.error else "is wrong" if self.wrong else "is right"
        return f"{self.graph or f'backend={self.backend!r}'} {outcome}"


@dataclass
class CapturedGraph:
    """A graph as Dynamo passes it to a backend, and the tensors it was called with."""

    graph: Any
    inputs: list[Any]


def compile_with(task: Task, backend: str | Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """torch.compile of a task's function, isolated from its earlier compilations.

    Dynamo counts everything compiled from one piece of code, whatever the backend. After eight it silently runs it in
    eager mode, which would look like agreement.
    """
    import torch

    if "isolate_recompiles" in python_inspect.signature(torch.compile).parameters:
        options["isolate_recompiles"] = True
    compiled: Callable[..., Any] = torch.compile(task.function, backend=backend, **options)
    return compiled


def stages_of(variant: Compiled) -> list[tuple[str, BlameStage]]:
    """The backends to try in order, up to the variant's own."""
    names = [name for name, _ in STAGES]
    if variant.backend in names:
        return list(STAGES[: names.index(variant.backend) + 1])
    return [STAGES[0], (variant.backend, BlameStage.BACKEND)]


def try_stages(reference: Reference, variant: Compiled, point: Point, task: Task) -> list[StageTrial]:
    """One trial for each stage, up to the first that differs from eager."""
    trials: list[StageTrial] = []
    for backend, stage in stages_of(variant):
        outcome = run_stage(reference, variant, point, task, backend)
        wrong = differs(reference, point, outcome, exact_kernels=backend == "eager")
        trials.append(StageTrial(backend, stage, wrong, outcome.error))
        if wrong:
            break
    return trials


def run_stage(reference: Reference, variant: Compiled, point: Point, task: Task, backend: str) -> RunOutcome:
    """Compile the function at the example with a backend, and run it at the point."""
    compiled = compile_with(task, backend, **compile_options(variant, backend))

    def run(*args: Any, **kwargs: Any) -> Step:
        return task.run(compiled, args, kwargs)

    if point is not reference.points[0]:
        observe(task, run, reference.points[0].inputs, reference.points[0].seed)
    return observe(task, run, point.inputs, point.seed)


def compile_options(variant: Compiled, backend: str) -> dict[str, Any]:
    """The options of torch.compile besides the backend: a variant's mode applies only to its own backend."""
    mode = variant.mode if backend == variant.backend and variant.mode != "default" else None
    options: dict[str, Any] = {"dynamic": variant.dynamic, "fullgraph": variant.fullgraph}
    return options if mode is None else {**options, "mode": mode}


def differs(reference: Reference, point: Point, outcome: RunOutcome, *, exact_kernels: bool = False) -> bool:
    """Whether an outcome at a point differs from eager's."""
    return bool(judge(outcome, reference.baseline(point), exact_kernels=exact_kernels).differences)


def exception_at(reference: Reference, variant: Compiled, point: Point, task: Task, backend: str) -> BaseException | None:
    """What a backend raises at a point, as an exception with its causes; None if it raises nothing."""
    compiled = compile_with(task, backend, **compile_options(variant, backend))
    example = reference.points[0]
    for item in [example] if point is example else [example, point]:
        args, kwargs = clone_inputs(item.inputs)
        with preserve_state(task), seed_generators(item.seed):
            try:
                task.run(compiled, args, kwargs)
            except Exception as error:
                if item is point:
                    return error
    return None


def captured_graphs(task: Task, point: Point) -> list[CapturedGraph]:
    """The graphs that Dynamo makes of a function at a point, each with its inputs."""
    captured: list[CapturedGraph] = []

    def backend(graph: Any, example: Any) -> Callable[..., Any]:
        item = CapturedGraph(graph, [])
        captured.append(item)

        def call(*inputs: Any) -> Any:
            item.inputs = [clone_tensor(value) if torch_private.is_tensor(value) else value for value in inputs]
            return graph.forward(*inputs)

        return call

    compiled = compile_with(task, backend)
    observe(task, lambda *args, **kwargs: task.run(compiled, args, kwargs), point.inputs, point.seed)
    return [item for item in captured if item.inputs]
