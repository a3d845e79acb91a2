"""Phase 2 of the tour: the graph that Dynamo captures, held against the lines it came from."""

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
CHOICES = ("every line becomes one node", "a line becomes one node or more", "a line becomes none, one or many nodes")


@dataclass(frozen=True)
class LineNodes:
    """A statement of the model's forward, and what the graph has of it."""

    statement: Statement
    operations: tuple[str, ...]


@dataclass(frozen=True)
class ModelCapture:
    """What Dynamo captured of one model."""

    model: str
    graphs: int
    calls: int
    inputs: int
    parameters: int
    """Inputs of the graphs that are parameters or buffers of the model."""
    explained: int
    """Operations that `torch._dynamo.explain` counts: it leaves out methods of tensors."""
    lines: tuple[LineNodes, ...]
    elsewhere: int = 0
    """Operations that belong to none of these lines: of functions that it calls, where torch keeps no line of its own."""
    broken: tuple[int, ...] = ()
    """Lines at which the graph broke, or the function was given up."""
    text: str = ""


@dataclass(frozen=True)
class DynamoExploration:
    """What `run_dynamo_exploration` has seen."""

    models: tuple[ModelCapture, ...]

    def answer(self) -> tuple[str, ...]:
        """How lines and nodes are related, in figures of this run."""
        every = [(model, line) for model in self.models for line in model.lines]
        if not every:
            return tuple(
                f"{item.model}: its lines cannot be read. {count(item.calls, 'operation')} in {count(item.graphs, 'graph')}."
                for item in self.models
            )
        numbers = Counter(min(len(line.operations), 2) for _, line in every)
        many, most = max(every, key=lambda item: len(item[1].operations))
        told = [
            f"{'Here it does.' if set(numbers) == {1} else 'No.'} Of {count(len(every), 'statement')} in "
            f"{count(len(self.models), 'model')}, {numbers[0]} became no node, {numbers[1]} became one and {numbers[2]} "
            "became several."
        ]
        if len(most.operations) > 1:
            listed = ", ".join(most.operations)
            told.append(
                f"The most came from line {most.statement.line} of {many.model}, `{most.statement.code}`: "
                f"{count(len(most.operations), 'node')} ({listed})."
            )
        empty = [
            (model, line.statement)
            for model, line in every
            if not line.operations and model.graphs and not model.elsewhere and line.statement.line not in model.broken
        ]
        if empty:
            model, statement = min(empty, key=lambda item: item[1].nested)
            sure = not statement.nested and not model.broken
            why = "what it does was known while tracing" if sure else "these inputs may not have reached it"
            told.append(f"None came from line {statement.line} of {model.model}, `{statement.code}`: {why}.")
        for model in self.models:
            if not model.graphs:
                told.append(f"Nothing of {model.model} was captured: it runs as if it were not compiled, see phase 3.")
            if model.elsewhere:
                nodes = count(model.elsewhere, "node")
                told.append(f"{model.model}: {nodes} came from none of its own lines, for torch keeps no line there.")
            if model.broken:
                lines = ", ".join(map(str, model.broken))
                told.append(f"{model.model}: the graph broke at line {lines}, which is in none.")
        inputs, parameters = sum(model.inputs for model in self.models), sum(model.parameters for model in self.models)
        if inputs:
            told.append(
                f"Of {count(inputs, 'input')} of these graphs parameters and buffers are {parameters}, read anew at each call."
            )
        return tuple(told)


def run_dynamo_exploration(target: Target | None = None, *, guide: Guide | None = None) -> DynamoExploration:
    """Capture the models of the tour, or one target, and count what became of each line.

    The backend is `eager`: Dynamo does all of its work, and nothing is compiled after it.
    """
    from compile_inspect.tour.guide import Guide

    guide = guide or Guide.silent()
    guide.guess("How do lines and nodes of the graph relate?", CHOICES)
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
    own = {line.statement.file for line in lines}
    places = [cause.location for cause in inspection.breaks if cause.location is not None]
    return ModelCapture(
        model=name,
        graphs=len(graphs),
        calls=calls,
        inputs=len(inputs),
        parameters=sum("_parameters_" in node.target or "_buffers_" in node.target for node in inputs),
        explained=operations,
        lines=lines,
        elsewhere=calls - sum(len(line.operations) for line in lines) if lines else 0,
        broken=tuple(sorted({place.line for place in places if place.file in own})),
        text=_text(graphs[0]) if graphs else "",
    )


def _text(graph: Graph) -> str:
    """A graph as lines to read: what is computed of what, and its type."""
    names = {node.name: _short(node.name) for node in graph.nodes}
    lines = []
    for node in graph.nodes:
        types = ", ".join(map(str, node.value))
        if node.is_call:
            given = ", ".join(names.get(item, item) for item in node.inputs)
            lines.append(f"{names[node.name]} = {_operation(node.target)}({given})  # {types}")
        elif node.operation == "placeholder":
            lines.append(f"{names[node.name]}: input  # {types}")
    return "\n".join(lines)


def _short(name: str) -> str:
    """What an input was in the program: `first.weight` for `l_self_modules_first_parameters_weight_`."""
    parts = re.sub(r"^l_(self_)?|_$", "", name, flags=re.IGNORECASE)
    return re.sub(r"_?(modules|parameters|buffers)_", ".", parts).strip(".") if parts != name else name


def _operation(target: str) -> str:
    return re.sub(r"^torch\.(nn\.functional\.|_C\._nn\.)?", "", target)


def _lines(target: Target, inspection: Inspection, graphs: tuple[Graph, ...]) -> tuple[LineNodes, ...]:
    """The statements of the function that is compiled, each with the operations that any graph has of it."""
    statements = statements_of(target.function)
    found: dict[Statement, list[str]] = {statement: [] for statement in statements}
    for graph in graphs:
        for node in graph.nodes:
            stack = inspection.stack(node.stack)
            if not node.is_call or stack is None:
                continue
            owner = next((item for item in statements for place in reversed(stack.locations) if item.holds(place)), None)
            if owner is not None:
                found[owner].append(_operation(node.target))
    return tuple(LineNodes(statement, tuple(operations)) for statement, operations in found.items())


def _show(exploration: DynamoExploration, guide: Guide) -> None:
    columns = ["Model", ">Graphs", ">Operations", ">explain counts", ">Inputs", ">of these parameters"]
    rows = [
        [item.model, *map(str, (item.graphs, item.calls, item.explained, item.inputs, item.parameters))]
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
        guide.settle(0 if numbers <= {1} else 1 if 0 not in numbers else 2)
