"""Assemble graphs from the descriptions of graph objects and from printed graphs."""

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
    """Dynamo's and AOTAutograd's graphs, in the order in which they were created.

    The description of a graph object and the printed graph are two events in either order, which are joined here. A printed
    graph without a description was loaded from a cache. Graphs of attempts that Dynamo discarded are omitted.
    """
    events = [event for event in events if event["kind"] in ("graph", "graph text") and event.get("event") in _STAGES]
    final = {
        event["compilation"]: (position, event.get("attempt"))
        for position, event in enumerate(events)
        if event["event"] == "dynamo_output_graph"
    }
    graphs: list[Graph] = []
    waiting_text: dict[tuple[str | None, str], list[int]] = {}
    waiting_nodes: dict[tuple[str | None, str], list[int]] = {}
    for position, event in enumerate(events):
        name = event["event"]
        last, attempt = final.get(event["compilation"], (-1, None))
        if position < last and event.get("attempt") != attempt:
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
    """The graph, with the call stack of its frame for calls that have no line, or only lines in torch.

    Dynamo records no line for a module whose `forward` is torch's own, such as `nn.Sequential`, and a compiled optimizer has
    only lines in torch; the user's line is then the one that calls it.
    """
    if call_stack is None:
        return graph
    has_no_stacks = not any(node.stack is not None for node in graph.nodes if node.is_call)
    nodes = []
    for node in graph.nodes:
        stack = call_stack if has_no_stacks and node.is_call else stacks.with_call(node.stack, call_stack)
        nodes.append(node if stack == node.stack else replace(node, stack=stack))
    return replace(graph, nodes=tuple(nodes))


def from_text(graph: Graph, stacks: StackTable) -> Graph:
    """The graph with the nodes from its printed form."""
    return replace(graph, nodes=parse_graph(graph.text, stacks), from_text=True)


def decode_nodes(rows: Iterable[dict[str, Any]], stacks: StackTable, prefix: str = "") -> tuple[Node, ...]:
    """Nodes from the description of a graph object; `prefix` is for those of a nested graph."""
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
