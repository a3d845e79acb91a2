"""Find where Dynamo's graph departs from the Python code: the first operation that eager runs and the graph does not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.float64_run import intercept_operations
from compile_inspect.agreement.inputs import clone_inputs
from compile_inspect.agreement.reference import Point
from compile_inspect.agreement.run_outcome import preserve_state, seed_generators
from compile_inspect.agreement.source_lines import line_of_stack, running_user_line
from compile_inspect.agreement.stage_search import CapturedGraph
from compile_inspect.records.locations import Location
from compile_inspect.variants import Task


@dataclass(frozen=True)
class Operation:
    """One operator as it ran: where it came from, and its inputs and outputs bit by bit."""

    name: str
    location: Location | None
    contents: tuple[Any, ...]


@dataclass(frozen=True)
class Divergence:
    """The first place where eager and Dynamo's graph differ."""

    location: Location | None
    eager: str
    """The operator that eager runs there, empty where it has finished."""
    graph: str
    """The operator that the graph runs there, empty where it has finished."""

    def __str__(self) -> str:
        if self.eager == self.graph:
            return f"{self.eager} takes or returns different values in Dynamo's graph and in eager mode"
        if not self.eager or not self.graph:
            longer_run, shorter_run = ("eager mode", "Dynamo's graph") if self.eager else ("Dynamo's graph", "eager mode")
            return f"{longer_run} runs {self.eager or self.graph}, and {shorter_run} runs nothing more"
        return f"eager mode runs {self.eager} where Dynamo's graph runs {self.graph}"


def find_divergence(task: Task, point: Point, graphs: list[CapturedGraph]) -> Divergence | None:
    """Compare what eager runs with what the graph runs; None where they do the same, or where there are several graphs."""
    if len(graphs) != 1:
        return None
    args, kwargs = clone_inputs(point.inputs)
    with preserve_state(task), seed_generators(point.seed):
        eager = _record_operations(lambda: task.run(task.function, args, kwargs), running_user_line)
    graph_operations = _operations_of_graph(task, point, graphs[0])
    for eager_operation, graph_operation in zip(eager, graph_operations, strict=False):
        if eager_operation.name != graph_operation.name or eager_operation.contents != graph_operation.contents:
            location = (
                graph_operation.location
                if eager_operation.name == graph_operation.name
                else eager_operation.location or graph_operation.location
            )
            return Divergence(location, eager_operation.name, graph_operation.name)
    if len(eager) == len(graph_operations) or task.gradients:  # a graph by itself has no backward
        return None
    rest = eager[len(graph_operations)] if len(eager) > len(graph_operations) else graph_operations[len(eager)]
    return Divergence(
        rest.location,
        rest.name if len(eager) > len(graph_operations) else "",
        "" if len(eager) > len(graph_operations) else rest.name,
    )


def _operations_of_graph(task: Task, point: Point, captured: CapturedGraph) -> list[Operation]:
    """What the code of a graph runs. It is then interpreted node by node for the lines: the code itself may be wrong."""
    graph = captured.graph
    current: list[Any] = []
    with preserve_state(task), seed_generators(point.seed):
        inputs = clone_inputs((tuple(captured.inputs), {}))[0]
        graph_operations = _record_operations(lambda: graph.forward(*inputs), lambda: None)
    with preserve_state(task), seed_generators(point.seed):
        inputs = clone_inputs((tuple(captured.inputs), {}))[0]
        located_operations = _record_operations(
            lambda: _interpret(graph, inputs, current), lambda: line_of_stack(current[-1].meta.get("stack_trace"))
        )
    locations = [item.location for item in located_operations] + [None] * len(graph_operations)
    return [replace(item, location=location) for item, location in zip(graph_operations, locations, strict=False)]


def _interpret(graph: Any, inputs: tuple[Any, ...], current: list[Any]) -> None:
    import torch

    class Follower(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            current.append(n)
            return super().run_node(n)

    with torch.set_grad_enabled(torch.is_grad_enabled()), torch_private.close_transforms():
        Follower(graph).run(*inputs)


def _record_operations(run: Callable[[], Any], locate: Callable[[], Location | None]) -> list[Operation]:
    operations: list[Operation] = []

    def note(operation: Any, args: Any, kwargs: Any) -> Any:
        location = locate()
        scalars = [leaf for leaf in torch_private.flatten((args, kwargs))[0] if isinstance(leaf, (bool, int, float, complex))]
        result = operation(*args, **kwargs)
        # Views are created where they are needed, and detaching is bookkeeping: how many there are means nothing.
        if not any(item.alias_info is not None and not item.alias_info.is_write for item in operation._schema.returns):
            undefined = "empty" in str(operation)
            outputs = [] if undefined else [_bits(leaf) for leaf in torch_private.flatten(result)[0]]
            operations.append(Operation(str(operation), location, (*map(repr, scalars), *outputs)))
        return result

    with intercept_operations(note), contextlib.suppress(Exception):  # what ran before an exception is compared too
        run()
    return operations


def _bits(value: Any) -> Any:
    """The contents of a tensor for bitwise comparison: 0.0 and -0.0 differ, NaN equals NaN."""
    import torch

    if not torch_private.is_tensor(value) or type(value) is not torch.Tensor or value.layout is not torch.strided:
        return str(type(value))
    try:
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        plain = torch.view_as_real(plain) if plain.is_complex() else plain
        return (tuple(value.shape), str(value.dtype), plain.flatten().view(torch.uint8).numpy().tobytes())
    except (RuntimeError, TypeError):  # wrapped by a transform, or without memory of its own
        return str(type(value))
