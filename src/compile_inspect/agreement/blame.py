"""What made a variant wrong: the stage, then the operation and the line it came from."""

from __future__ import annotations

import re
import warnings
from typing import Any

from compile_inspect.agreement.inputs import cloned
from compile_inspect.agreement.judge import judge
from compile_inspect.agreement.observation import observe
from compile_inspect.agreement.prefixes import first_wrong_node
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.agreement.sources import line_of_operation, line_of_stack
from compile_inspect.agreement.stages import captured_graphs, compiled_with, wrong_stage
from compile_inspect.capture import torch_private
from compile_inspect.records.agreement import Blame, BlameStage
from compile_inspect.records.locations import Location
from compile_inspect.variants import Prepared, Refused, Step, Task, Variant
from compile_inspect.variants.base import one_line
from compile_inspect.variants.compiled import Compiled
from compile_inspect.variants.program import Program, traced
from compile_inspect.variants.torchscript import TorchScript


def find_blame(reference: Reference, variant: Variant, prepared: Prepared | None, point: Point, task: Task) -> Blame:
    """Which part of torch, and which operation, makes a variant wrong at a point; `task` may be run freely."""
    try:
        with torch_private.suppressed_compiler_output():
            if isinstance(variant, Compiled):
                return _of_compiled(reference, variant, point, task)
            if isinstance(variant, TorchScript):
                return _of_torchscript(reference, variant, point, task)
            return _of_traced(reference, point, task)
    except Exception as error:  # a search that fails must not hide what it was made for
        return Blame(BlameStage.UNKNOWN, f"the search for what is to blame failed: {one_line(error)}")


def _of_compiled(reference: Reference, variant: Compiled, point: Point, task: Task) -> Blame:
    stage = wrong_stage(reference, variant, point, task)
    if stage is BlameStage.DYNAMO:
        return Blame(stage, f"{stage.value}: it is wrong with backend='eager' too")

    backend = "aot_eager_decomp_partition" if stage is BlameStage.DECOMPOSITIONS else variant.backend
    backend = "aot_eager" if stage is BlameStage.AOT_AUTOGRAD else backend

    def prepare(beginning: Task) -> Prepared:
        compiled = compiled_with(beginning, backend, mode=None)

        def run(*args: Any, **kwargs: Any) -> Step:
            return beginning.run(compiled, args, kwargs)

        try:
            run(*cloned((beginning.args, {}))[0])
        except Exception as error:
            raise Refused(one_line(error)) from error
        return Prepared(Compiled(backend), run, None, 0.0)

    for captured in captured_graphs(task, point):
        node = first_wrong_node(captured.graph, captured.inputs, prepare, gradients=task.gradients)
        if node is not None:
            return _at(stage, node, line_of_stack(node.meta.get("stack_trace")), captured.graph)
    if stage is BlameStage.INDUCTOR:
        found = _of_traced(reference, point, task)
        if found.node:
            return found
    return Blame(stage, f"{stage.value}; no operation is wrong by itself, so it takes several together")


def _of_traced(reference: Reference, point: Point, task: Task) -> Blame:
    """A graph made by tracing: run it as it is, and if that is right, blame what was made of it."""
    program, graph, _ = traced(task)
    if _traced_is_wrong(reference, point, task, program, graph):
        return Blame(BlameStage.TRACING, f"{BlameStage.TRACING.value}: the graph is wrong before it is compiled")
    inputs = [tensor.detach() for tensor in program.tensors(*point.inputs)]

    def prepare(beginning: Task) -> Prepared:
        compiled = torch_private.compile_graph(beginning.function, list(beginning.args))

        def run(*args: Any) -> Step:
            return Step(tuple(compiled(*args)))

        return Prepared(Compiled("inductor"), run, None, 0.0)

    node = first_wrong_node(graph, inputs, prepare, gradients=False)
    if node is None:
        stage = BlameStage.INDUCTOR
        return Blame(stage, f"{stage.value}; no operation is wrong by itself, so it takes several together")
    return _at(BlameStage.INDUCTOR, node, line_of_operation(task, graph, node), graph)


def _traced_is_wrong(reference: Reference, point: Point, task: Task, program: Program, graph: Any) -> bool:
    def run(*args: Any, **kwargs: Any) -> Step:
        return program.run(lambda tensors: list(graph(*tensors)), args, kwargs)

    seen = observe(task, run, point.inputs, point.seed)
    return bool(judge(seen, reference.bystanders(point)).differences)


def _of_torchscript(reference: Reference, variant: TorchScript, point: Point, task: Task) -> Blame:
    """Without its optimiser TorchScript runs the graph operation by operation: what is wrong then was traced wrongly."""
    import torch

    def run(*args: Any, **kwargs: Any) -> Step:
        with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
            return task.run(script, args, kwargs)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if variant.how == "trace":
            with torch.set_grad_enabled(task.gradients):
                script = torch.jit.trace(task.function, task.args, check_trace=False)  # type: ignore[no-untyped-call]
        else:
            script = torch.jit.script(task.function)
    seen = observe(task, run, point.inputs, point.seed)
    if not judge(seen, reference.bystanders(point)).differences:
        return Blame(BlameStage.SCRIPTING, f"{BlameStage.SCRIPTING.value}: unoptimised it is right")
    stage = BlameStage.TRACING if variant.how == "trace" else BlameStage.SCRIPTING
    for warning in caught:
        if "trace" in str(warning.message).lower() and not Location(warning.filename, 0).in_torch:
            location = Location(warning.filename, warning.lineno, code=_code(warning.filename, warning.lineno))
            what = re.sub(r"\s+", " ", str(warning.message)).partition(". ")[0]
            return Blame(stage, f"{stage.value}: at {location}, {what}", location=location)
    return Blame(stage, stage.value)


def _code(file: str, line: int) -> str:
    import linecache

    return linecache.getline(file, line).strip()


def _at(stage: BlameStage, node: Any, location: Location | None, graph: Any) -> Blame:
    where = f", from {location}" if location is not None else ""
    code = f": {location.code}" if location is not None and location.code else ""
    operation = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    message = f"{stage.value}: wrong from the operation {node.name} ({operation}) on{where}{code}"
    return Blame(stage, message, str(node.name), str(node.target), location, str(graph.graph))
