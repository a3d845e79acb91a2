"""Graphs from their live descriptions and their printed forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from compile_inspect.assemble.graph_text import parse_graph
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Direction, Graph, Node, Stage, TensorType

_STAGES = {
    "dynamo_output_graph": (Stage.DYNAMO, Direction.FORWARD),
    "aot_joint_graph": (Stage.JOINT, Direction.UNKNOWN),
    "aot_forward_graph": (Stage.FORWARD, Direction.FORWARD),
    "aot_backward_graph": (Stage.BACKWARD, Direction.BACKWARD),
    "aot_inference_graph": (Stage.INFERENCE, Direction.INFERENCE),
}


def assemble_graphs(events: Iterable[Event], stacks: StackTable, call_stacks: Mapping[str, int]) -> list[Graph]:
    """Dynamo's and AOTAutograd's graphs, in the order they were made.

    A live description and a printed form of one graph come as two events in either order; whichever comes
    first waits for the other. A printed form that nothing joins was replayed from a cache. Graphs of an attempt that
    Dynamo threw away are left out.
    """
    events = [event for event in events if event["kind"] in ("graph", "graph text") and event.get("event") in _STAGES]
    final = {
        event["compilation"]: (place, event.get("attempt"))
        for place, event in enumerate(events)
        if event["event"] == "dynamo_output_graph"
    }
    graphs: list[Graph] = []
    waiting_text: dict[tuple[str | None, str], list[int]] = {}
    waiting_nodes: dict[tuple[str | None, str], list[int]] = {}
    for place, event in enumerate(events):
        name = event["event"]
        last, attempt = final.get(event["compilation"], (-1, None))
        if place < last and event.get("attempt") != attempt:
            continue
        key = (event["compilation"], name)
        if event["kind"] == "graph text":
            partners, waiting = waiting_text.get(key), waiting_nodes
            change: dict[str, Any] = {"text": event["text"]}
        else:
            partners, waiting = waiting_nodes.get(key), waiting_text
            change = {"nodes": decode_nodes(event["nodes"], stacks)}
        if partners:
            index = partners.pop(0)
            graphs[index] = replace(graphs[index], **change)
        else:
            stage, direction = _STAGES[name]
            waiting.setdefault(key, []).append(len(graphs))
            graph = Graph(f"{key[0]}:{stage.name.lower()}:{len(graphs)}", key[0], stage, direction, ())
            graphs.append(replace(graph, **change))
    finished = (graph if graph.nodes else from_text(graph, stacks) for graph in graphs)
    return [with_call_stack(graph, call_stacks.get(graph.compilation or ""), stacks) for graph in finished]


def with_call_stack(graph: Graph, call_stack: int | None, stacks: StackTable) -> Graph:
    """The same graph, with how its frame was called where a call has no line, or only lines of torch's.

    Dynamo records no line for a module whose `forward` is torch's own, `nn.Sequential` for one, and a compiled
    optimizer is all torch; the line that calls it is then the user's.
    """
    if call_stack is None:
        return graph
    nowhere = not any(node.stack is not None for node in graph.nodes if node.is_call)
    nodes = []
    for node in graph.nodes:
        stack = call_stack if nowhere and node.is_call else stacks.placed(node.stack, call_stack)
        nodes.append(node if stack == node.stack else replace(node, stack=stack))
    return replace(graph, nodes=tuple(nodes))


def from_text(graph: Graph, stacks: StackTable) -> Graph:
    """The same graph with the nodes that its printed form tells."""
    return replace(graph, nodes=parse_graph(graph.text, stacks), from_text=True)


def decode_nodes(rows: Iterable[dict[str, Any]], stacks: StackTable, prefix: str = "") -> tuple[Node, ...]:
    """Nodes from a live description; `prefix` marks those of a nested graph."""
    return tuple(
        Node(
            name=prefix + row["name"],
            operation=row["operation"],
            target=row["target"],
            inputs=tuple(prefix + name for name in row.get("inputs", ())),
            arguments=row.get("arguments", ""),
            value=tuple(
                TensorType(tuple(shape), dtype, device, tuple(strides))
                for shape, dtype, device, strides in row.get("value", ())
            ),
            stack=stacks.number(row.get("stack")),
            module=row.get("module", ""),
        )
        for row in rows
    )
