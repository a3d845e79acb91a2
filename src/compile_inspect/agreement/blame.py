"""Find what made a variant wrong: the stage, then the operation and the line it came from."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.divergence import find_divergence
from compile_inspect.agreement.evidence import Evidence
from compile_inspect.agreement.graph_prefixes import first_wrong_node, is_wrong_alone, node_named, node_of_source
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.agreement.part_search import Culprit, Decide, PartSearch
from compile_inspect.agreement.reference import Point, Reference
from compile_inspect.agreement.run_outcome import observe
from compile_inspect.agreement.source_lines import innermost_cause, line_of_exception, line_of_operation
from compile_inspect.agreement.stage_search import (
    CapturedGraph,
    StageTrial,
    captured_graphs,
    compile_options,
    compile_with,
    differs,
    exception_at,
    run_stage,
    try_stages,
)
from compile_inspect.records.agreement import Blame, BlameStage
from compile_inspect.records.locations import Location
from compile_inspect.variants import Prepared, RefusalError, Step, Task, Variant
from compile_inspect.variants.base import one_line
from compile_inspect.variants.captured_program import CapturedProgram, trace_task
from compile_inspect.variants.compiled import Compiled
from compile_inspect.variants.torchscript import TorchScript

MAX_NODES_COMPILED_ALONE = 6
"""Maximum number of nodes changed by a pass that are compiled alone."""


def find_blame(reference: Reference, variant: Variant, prepared: Prepared | None, point: Point, task: Task) -> Blame:
    """Find the part of torch, and the operation, that makes a variant wrong at a point; `task` may be run freely."""
    evidence = Evidence(eager_raises=point.eager.error)
    try:
        # torch.fx prints the code of a graph that raises.
        with torch_private.suppressed_compiler_output(), contextlib.redirect_stderr(io.StringIO()):
            if isinstance(variant, TorchScript):
                return _blame_torchscript(reference, variant, point, task)
            if isinstance(variant, Compiled):
                _examine_compiled(evidence, reference, variant, point, task)
            else:
                return _blame_traced(evidence, reference, point, task)
    except Exception as error:  # a search that fails must not hide the wrong result
        evidence.failure = one_line(error)
    return evidence.blame()


def _examine_compiled(evidence: Evidence, reference: Reference, variant: Compiled, point: Point, task: Task) -> None:
    evidence.trials = try_stages(reference, variant, point, task)
    faulty_stage = evidence.faulty_stage
    if faulty_stage is None:
        return
    if faulty_stage.error is not None and point.eager.error is None:
        error = exception_at(reference, variant, point, task, faulty_stage.backend)
        evidence.exception = faulty_stage.error if error is None else innermost_cause(error)
        evidence.exception_location = None if error is None else line_of_exception(error)
    graphs = captured_graphs(task, point)
    if faulty_stage.stage is BlameStage.DYNAMO:
        evidence.divergence = None if evidence.exception else find_divergence(task, point, graphs)
        return

    def is_right(decide: Decide) -> bool:
        with torch_private.leave_out(decide):
            return not differs(reference, point, run_stage(reference, variant, point, task, faulty_stage.backend))

    if faulty_stage.stage in (BlameStage.DECOMPOSITIONS, BlameStage.INDUCTOR) and evidence.exception is None:
        evidence.culprit = _search_parts(faulty_stage.stage, is_right)
    _examine_graphs(evidence, faulty_stage, variant, graphs, task)


def _search_parts(stage: BlameStage, is_right: Callable[[Decide], bool]) -> Culprit | None:
    search = PartSearch(is_right)
    if search.list_parts():
        return None
    first = torch_private.DECOMPOSITIONS if stage is BlameStage.DECOMPOSITIONS else torch_private.LOWERINGS
    kinds = (first, torch_private.PASSES) if stage is BlameStage.INDUCTOR else (first,)
    return next((culprit for culprit in map(search.find, kinds) if culprit is not None), None)


def _examine_graphs(
    evidence: Evidence, faulty_stage: StageTrial, variant: Compiled, graphs: list[CapturedGraph], task: Task
) -> None:
    """Compile pieces of Dynamo's graphs: the suspected node alone, or shorter and shorter prefixes."""

    def prepare(piece: Task) -> Prepared:
        compiled = compile_with(piece, faulty_stage.backend, **compile_options(variant, faulty_stage.backend))

        def run(*args: Any, **kwargs: Any) -> Step:
            return piece.run(compiled, args, kwargs)

        try:
            run(*clone_inputs((piece.args, {}))[0])
        except Exception as error:
            raise RefusalError(one_line(error)) from error
        return Prepared(Compiled(faulty_stage.backend), run, None, 0.0)

    for captured in graphs:
        graph, inputs = captured.graph, captured.inputs

        def alone(node: Any, graph: Any = graph, inputs: list[Any] = inputs) -> bool | None:
            return is_wrong_alone(graph, node, inputs, prepare, gradients=task.gradients)

        node = _node_of_culprit(evidence, graph, alone)
        if node is None and (evidence.culprit is None or not evidence.culprit.part.operation):
            node = first_wrong_node(graph, inputs, prepare, gradients=task.gradients)
            evidence.shortest_prefix = node is not None
            evidence.wrong_alone = None if node is None else alone(node)
        if node is not None:
            evidence.node, evidence.graph = node, str(graph.graph)
            return


def _node_of_culprit(evidence: Evidence, graph: Any, alone: Callable[[Any], bool | None]) -> Any:
    """The node of Dynamo's graph to which a part of the compiler was applied, compiled alone.

    A pass may have changed several nodes: the one that is wrong alone is returned, or else the first.
    """
    culprit = evidence.culprit
    if culprit is None:
        return None
    if not culprit.changed_nodes:
        node = node_of_source(graph, culprit.part.source, culprit.part.stack_trace)
        evidence.wrong_alone = None if node is None else alone(node)
        return node
    changed_nodes = culprit.changed_nodes[:MAX_NODES_COMPILED_ALONE]
    nodes = [node_of_source(graph, item.source, item.stack_trace) for item in changed_nodes]
    outcomes = [None if node is None else alone(node) for node in nodes]
    culprit_index = outcomes.index(True) if True in outcomes else 0
    rest = (item for index, item in enumerate(culprit.changed_nodes) if index != culprit_index)
    evidence.culprit = replace(culprit, changed_nodes=(culprit.changed_nodes[culprit_index], *rest))
    evidence.wrong_alone = outcomes[culprit_index]
    return nodes[culprit_index]


def _blame_traced(evidence: Evidence, reference: Reference, point: Point, task: Task) -> Blame:
    """For a graph made by tracing: run it as it is, and if that is right, blame its compilation."""
    program, graph, _ = trace_task(task)
    if differs(reference, point, _run_traced(task, point, program, graph)):
        return Blame(BlameStage.TRACING, f"{BlameStage.TRACING.value}: the graph is wrong before it is compiled")
    inputs = [tensor.detach() for tensor in program.tensors(*point.inputs)]
    decomposed = torch_private.trace(graph, inputs, decompose=True)
    wrong = differs(reference, point, _run_traced(task, point, program, decomposed))
    evidence.trials = [
        StageTrial("", BlameStage.TRACING, wrong=False, graph="the traced graph"),
        StageTrial("", BlameStage.DECOMPOSITIONS, wrong=wrong, graph="the same graph decomposed"),
    ]
    evidence.graph = str(graph.graph)

    def is_right(decide: Decide) -> bool:
        with torch_private.leave_out(decide):
            try:
                compiled = torch_private.compile_graph(graph, list(inputs))
            except Exception:  # not everything can be left out
                return False
            return not differs(reference, point, _run_traced(task, point, program, compiled))

    if not wrong:
        evidence.trials.append(StageTrial("inductor", BlameStage.INDUCTOR, wrong=True, graph="what Inductor makes of it"))
        evidence.culprit = _search_parts(BlameStage.INDUCTOR, is_right)
    node = None if evidence.culprit is None else _traced_node(evidence.culprit, graph)
    if evidence.culprit is None:
        node = evidence.node = first_wrong_node(graph, inputs, _prepare_traced, gradients=False)
        evidence.shortest_prefix = node is not None
    if node is not None:
        evidence.location = line_of_operation(task, graph, node)
    return evidence.blame()


def _prepare_traced(piece: Task) -> Prepared:
    compiled = torch_private.compile_graph(piece.function, list(piece.args))
    return Prepared(Compiled("inductor"), lambda *args: Step(tuple(compiled(*args))), None, 0.0)


def _traced_node(culprit: Culprit, graph: Any) -> Any:
    """The node in a traced graph to which a part of the compiler was applied: by name, or the only one with its operator."""
    node_or_part = culprit.changed_nodes[0] if culprit.changed_nodes else culprit.part
    node = node_named(graph, node_or_part.name)
    if node is not None:
        return node
    operators = (node_or_part.operation, culprit.part.original)
    candidates = [item for item in graph.graph.nodes if item.op == "call_function" and str(item.target) in operators]
    return candidates[0] if len(candidates) == 1 else None


def _run_traced(task: Task, point: Point, program: CapturedProgram, graph: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Step:
        return program.run(lambda tensors: list(graph(*tensors)), args, kwargs)

    return observe(task, run, point.inputs, point.seed)


def _blame_torchscript(reference: Reference, variant: TorchScript, point: Point, task: Task) -> Blame:
    """Without its optimizer, TorchScript runs the graph operation by operation: if that is wrong, tracing was wrong."""
    import torch

    def run(*args: Any, **kwargs: Any) -> Step:
        with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
            return task.run(script, args, kwargs)

    with warnings.catch_warnings(record=True) as warning_records:
        warnings.simplefilter("always")
        if variant.how == "trace":
            with torch.set_grad_enabled(task.gradients):
                script = torch.jit.trace(task.function, task.args, check_trace=False)  # type: ignore[no-untyped-call]
        else:
            script = torch.jit.script(task.function)
    if not differs(reference, point, observe(task, run, point.inputs, point.seed)):
        return Blame(BlameStage.SCRIPTING, f"{BlameStage.SCRIPTING.value}: without its optimizer it is right")
    stage = BlameStage.TRACING if variant.how == "trace" else BlameStage.SCRIPTING
    for warning in warning_records:
        if "trace" in str(warning.message).lower() and not Location(warning.filename, 0).in_torch:
            code = linecache.getline(warning.filename, warning.lineno).strip()
            location = Location(warning.filename, warning.lineno, code=code)
            what = re.sub(r"\s+", " ", str(warning.message)).partition(". ")[0]
            return Blame(stage, f"{stage.value}: at {location}, {what}", location=location)
    return Blame(stage, stage.value)
