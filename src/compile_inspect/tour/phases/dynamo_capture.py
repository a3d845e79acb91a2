"""Phase 2 of the tour: the graph that Dynamo captures, compared with the lines it came from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compile_inspect.tour.calls import model_name
from compile_inspect.tour.statements import Statement, statements_of
from compile_inspect.wording.quantities import count

if TYPE_CHECKING:
    from compile_inspect.records import Graph, Inspection
    from compile_inspect.target import Target
    from compile_inspect.tour.guide import Guide

MODELS = ("mlp", "information", "salience", "query_content", "block")
CHOICES = ("every line becomes one node", "a line becomes one node or more", "a line becomes zero, one or many nodes")


@dataclass(frozen=True)
class LineNodes:
    """A statement of the model's forward and the graph operations it became."""

    statement: Statement
    operations: tuple[str, ...]


@dataclass(frozen=True)
class ModelCapture:
    """Dynamo's capture of one model."""

    model: str
    graphs: int
    calls: int
    inputs: int
    parameters: int
    """Inputs of the graphs that are parameters or buffers of the model."""
    explain_count: int
    """Operations counted by `torch._dynamo.explain`, which leaves out methods of tensors."""
    lines: tuple[LineNodes, ...]
    unattributed: int = 0
    """Operations from functions that these lines call, for which torch records no line of the model."""
    break_lines: tuple[int, ...] = ()
    """Lines where the graph broke or Dynamo skipped the function."""
    text: str = ""


@dataclass(frozen=True)
class DynamoExploration:
    """The captures of `run_dynamo_exploration`."""

    models: tuple[ModelCapture, ...]

    def answer(self) -> tuple[str, ...]:
        """How lines and nodes relate, with the numbers of this run."""
        model_lines = [(model, line) for model in self.models for line in model.lines]
        if not model_lines:
            return tuple(
                f"{item.model}: its source is not available. {count(item.calls, 'operation')} in {count(item.graphs, 'graph')}."
                for item in self.models
            )
        numbers = Counter(min(len(line.operations), 2) for _, line in model_lines)
        largest_model, largest = max(model_lines, key=lambda item: len(item[1].operations))
        sentences = [
            f"{'In this run it does.' if set(numbers) == {1} else 'No.'} Of {count(len(model_lines), 'statement')} in "
            f"{count(len(self.models), 'model')}, {numbers[0]} became no node, {numbers[1]} became one node and {numbers[2]} "
            "became several nodes."
        ]
        if len(largest.operations) > 1:
            operations = ", ".join(largest.operations)
            sentences.append(
                f"Line {largest.statement.line} of {largest_model.model}, `{largest.statement.code}`, became the most nodes: "
                f"{len(largest.operations):,} ({operations})."
            )
        empty = [
            (model, line.statement)
            for model, line in model_lines
            if not line.operations and model.graphs and not model.unattributed and line.statement.line not in model.break_lines
        ]
        if empty:
            model, statement = min(empty, key=lambda item: item[1].nested)
            certain = not statement.nested and not model.break_lines
            why = "Dynamo evaluated it while tracing" if certain else "these inputs may not have reached it"
            sentences.append(f"Line {statement.line} of {model.model}, `{statement.code}`, became no node: {why}.")
        for model in self.models:
            if not model.graphs:
                sentences.append(
                    f"Dynamo captured nothing of {model.model}: it runs as if it were not compiled. Phase 3 shows why."
                )
            if model.unattributed:
                nodes = count(model.unattributed, "node")
                sentences.append(f"{model.model}: torch recorded no line of the model for {nodes}.")
            if model.break_lines:
                lines = ", ".join(map(str, model.break_lines))
                sentences.append(f"{model.model}: the graph broke at line {lines}, which is in no graph.")
        inputs, parameters = sum(model.inputs for model in self.models), sum(model.parameters for model in self.models)
        if inputs:
            sentences.append(
                f"Of the {count(inputs, 'input')} of these graphs, {parameters} are parameters or buffers, read again at each "
                "call."
            )
        return tuple(sentences)


def run_dynamo_exploration(target: Target | None = None, *, guide: Guide | None = None) -> DynamoExploration:
    """Capture the models of the tour, or one target, and count the nodes of each line.

    The backend is `eager`: Dynamo does all of its work, and nothing is compiled afterward.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    guide.ask("How do lines and nodes of the graph relate?", CHOICES)
    targets = [target] if target else [guide.model(name) for name in MODELS]
    exploration = DynamoExploration(tuple(_capture(item, guide) for item in targets))
    _show(exploration, guide)
    return exploration


def _capture(target: Target, guide: Guide) -> ModelCapture:
    from compile_inspect import torch_private
    from compile_inspect.capture.api import inspect
    from compile_inspect.records import Stage
    from compile_inspect.silence import silence

    name = model_name(target)
    with guide.working(f"capturing {name}"), torch_private.suppressed_compiler_output(), silence():
        torch_private.forget_compiled_code()
        inspection = inspect(replace(target, gradients=False, further=()), backend="eager")
        _, _, operations = torch_private.explain(target.function, target.args, dict(target.kwargs))
    graphs = inspection.graphs_at(Stage.DYNAMO)
    inputs = [node for graph in graphs for node in graph.nodes if node.operation == "placeholder"]
    lines = _lines(target, inspection, graphs)
    calls = sum(graph.call_count for graph in graphs)
    model_files = {line.statement.file for line in lines}
    break_locations = [cause.location for cause in inspection.breaks if cause.location is not None]
    return ModelCapture(
        model=name,
        graphs=len(graphs),
        calls=calls,
        inputs=len(inputs),
        parameters=sum("_parameters_" in node.target or "_buffers_" in node.target for node in inputs),
        explain_count=operations,
        lines=lines,
        unattributed=calls - sum(len(line.operations) for line in lines) if lines else 0,
        break_lines=tuple(sorted({location.line for location in break_locations if location.file in model_files})),
        text=_text(graphs[0]) if graphs else "",
    )


def _text(graph: Graph) -> str:
    """A graph as readable lines: each operation with its inputs and its type."""
    names = {node.name: _short(node.name) for node in graph.nodes}
    lines = []
    for node in graph.nodes:
        types = ", ".join(map(str, node.value))
        if node.is_call:
            arguments = ", ".join(names.get(item, item) for item in node.inputs)
            lines.append(f"{names[node.name]} = {_operation(node.target)}({arguments})  # {types}")
        elif node.operation == "placeholder":
            lines.append(f"{names[node.name]}: input  # {types}")
    return "\n".join(lines)


def _short(name: str) -> str:
    """The name of an input in the program: `first.weight` for `l_self_modules_first_parameters_weight_`."""
    parts = re.sub(r"^l_(self_)?|_$", "", name, flags=re.IGNORECASE)
    return re.sub(r"_?(modules|parameters|buffers)_", ".", parts).strip(".") if parts != name else name


def _operation(target: str) -> str:
    return re.sub(r"^torch\.(nn\.functional\.|_C\._nn\.)?", "", target)


def _lines(target: Target, inspection: Inspection, graphs: tuple[Graph, ...]) -> tuple[LineNodes, ...]:
    """The statements of the compiled function, each with its operations in any graph."""
    statements = statements_of(target.function)
    operations: dict[Statement, list[str]] = {statement: [] for statement in statements}
    for graph in graphs:
        for node in graph.nodes:
            stack = inspection.stack(node.stack)
            if not node.is_call or stack is None:
                continue
            owner = next(
                (item for item in statements for location in reversed(stack.locations) if item.contains(location)), None
            )
            if owner is not None:
                operations[owner].append(_operation(node.target))
    return tuple(LineNodes(statement, tuple(names)) for statement, names in operations.items())


def _show(exploration: DynamoExploration, guide: Guide) -> None:
    columns = ["Model", ">Graphs", ">Operations", ">explain() count", ">Inputs", ">Parameters and buffers"]
    rows = [
        [item.model, *map(str, (item.graphs, item.calls, item.explain_count, item.inputs, item.parameters))]
        for item in exploration.models
    ]
    guide.table("What Dynamo captured", columns, rows)
    for item in exploration.models:
        rows = [
            [str(line.statement.line), line.statement.code, str(len(line.operations)), ", ".join(line.operations)]
            for line in item.lines
        ]
        if rows:
            guide.table(f"{item.model}, line by line", [">Line", "Statement", ">Nodes", "Operations in the graph"], rows)
    first = exploration.models[0]
    if first.text:
        guide.listing(f"The graph of {first.model}", first.text, language="python")
    numbers = {min(len(line.operations), 2) for item in exploration.models for line in item.lines}
    if numbers:
        guide.reveal(0 if numbers <= {1} else 1 if 0 not in numbers else 2)
