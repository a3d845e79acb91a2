"""Everything Inductor made of each graph, tied together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compile_inspect.assemble.generated_code import Call, GeneratedCode, read_code
from compile_inspect.assemble.graph_text import widen_stacks
from compile_inspect.assemble.graphs import decode_nodes, from_text, with_call_stack
from compile_inspect.assemble.node_outcomes import explain_unplaced
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import (
    Direction,
    Graph,
    Kernel,
    KernelKind,
    Location,
    Lowering,
    MemoryEstimate,
    Node,
    NotFused,
    Stage,
)


@dataclass
class _Work:
    """What is known of one lowering while events are read."""

    compilation: str | None
    direction: Direction
    nodes: tuple[Node, ...] = ()
    text: str = ""
    kernels: list[Event] = field(default_factory=list)
    code: str = ""
    path: str = ""
    not_fused: list[list[Any]] = field(default_factory=list)
    memory: Event | None = None
    from_cache: bool = False


def assemble_lowerings(
    events: Iterable[Event], stacks: StackTable, call_stacks: Mapping[str, int], earlier_graphs: Iterable[Graph]
) -> list[tuple[Lowering, Graph]]:
    """All lowerings, each with its post-grad graph.

    A printed post-grad graph comes just before the lowering it belongs to. Code that no lowering claims was
    replayed from a cache.
    """
    works: list[_Work] = []
    numbered: dict[int, _Work] = {}
    printed: dict[tuple[str | None, int], list[str]] = defaultdict(list)
    for event in events:
        kind, place = event["kind"], (event.get("compilation"), event.get("thread", 0))
        if kind == "graph text" and event["event"] == "inductor_post_grad_graph":
            printed[place].append(event["text"])
        elif kind == "lowering":
            work = numbered.get(event["lowering"])
            if work is None:
                work = numbered[event["lowering"]] = _Work(event["compilation"], _direction(event))
                work.text = printed[place].pop() if printed[place] else ""
                works.append(work)
            prefix = f"{event['path']}/" if event["path"] else ""
            work.nodes += decode_nodes(event["nodes"], stacks, prefix)
        elif kind == "code":
            claimed = numbered.get(event["lowering"]) if event["lowering"] is not None else None
            if claimed is None:
                text = printed[place].pop(0) if printed[place] else ""
                claimed = _Work(event["compilation"], Direction.UNKNOWN, text=text, from_cache=True)
                works.append(claimed)
            # Of a graph that has been written already, it is another file.
            if event["text"] not in claimed.code:
                claimed.code = f"{claimed.code}\n{event['text']}" if claimed.code else event["text"]
            claimed.path = claimed.path or event["path"]
        elif kind in ("kernel", "not fused", "memory") and event["lowering"] in numbered:
            _read_detail(numbered[event["lowering"]], event)
    captured = _Captured(earlier_graphs, stacks)
    finished: list[tuple[Lowering, Graph]] = []
    built: dict[str, Lowering] = {}
    for number, work in enumerate(works):
        lowering, graph = _finish(number, work, stacks, call_stacks.get(work.compilation or ""), captured)
        if lowering.from_cache and lowering.code_path in built:
            lowering = _with_known_kernels(lowering, graph, built[lowering.code_path])
        elif lowering.code_path:
            built.setdefault(lowering.code_path, lowering)
        finished.append((lowering, graph))
    return finished


def _read_detail(work: _Work, event: Event) -> None:
    if event["kind"] == "kernel":
        work.kernels.append(event)
    elif event["kind"] == "not fused":
        work.not_fused += event["rows"]
    else:
        work.memory = event


def _finish(
    number: int, work: _Work, stacks: StackTable, call_stack: int | None, captured: _Captured
) -> tuple[Lowering, Graph]:
    code = read_code(work.code)
    direction = work.direction if work.direction is not Direction.UNKNOWN else code.direction
    identifier = f"{work.compilation}:post_grad:{number}"
    graph = Graph(identifier, work.compilation, Stage.POST_GRAD, direction, work.nodes, work.text)
    if not graph.nodes:
        graph = from_text(graph, stacks)
        graph = replace(graph, nodes=widen_stacks(graph.nodes, stacks, captured.by_line.get(work.compilation, {})))
    graph = with_call_stack(graph, call_stack, stacks)
    kernels = (
        _kernels_from_code(work, code, captured.by_node) if work.from_cache else _kernels(work, code, graph, stacks, call_stack)
    )
    placed = {name for kernel in kernels for name in kernel.nodes}
    lowering = Lowering(
        id=f"{work.compilation}:lowering:{number}",
        compilation=work.compilation,
        direction=direction,
        graph=identifier,
        code=work.code,
        code_path=work.path,
        kernels=kernels,
        unplaced=() if work.from_cache else explain_unplaced(graph, placed),
        not_fused=_not_fused(work.not_fused, kernels),
        memory=_memory(work.memory),
        from_cache=work.from_cache,
    )
    return lowering, graph


def _direction(event: Event) -> Direction:
    if event["backward"]:
        return Direction.BACKWARD
    return Direction.INFERENCE if event["inference"] else Direction.FORWARD


def _kernels(work: _Work, code: GeneratedCode, graph: Graph, stacks: StackTable, call_stack: int | None) -> tuple[Kernel, ...]:
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in code.calls:
        calls[call.name].append(call)
    nodes = {node.name: node for node in graph.nodes}
    kernels = []
    for event in work.kernels:
        prefix = f"{event['path']}/" if event["path"] else ""
        # A branch's kernel may also compute nodes of the graph around it.
        names = tuple(prefix + name if prefix + name in nodes else name for name in event["nodes"])
        placed = (stacks.placed(stacks.number(index), call_stack) for index in event["stacks"])
        found = {number for number in placed if number is not None}
        own_calls = calls.get(event["name"], [])
        definition = code.definitions.get(event["name"])
        kernels.append(
            Kernel(
                name=event["name"],
                kind=_kind(event, definition.kind if definition else None),
                nodes=names,
                stacks=tuple(sorted(found)) or _nearby_stacks(names, nodes),
                scheduler_nodes=tuple(event["scheduler"]),
                first_line=definition.first_line if definition else None,
                last_line=definition.last_line if definition else None,
                call_line=own_calls.pop(0).line if own_calls else None,
            )
        )
    return tuple(kernels)


def _kind(event: Event, defined: KernelKind | None) -> KernelKind:
    if event["class"] == "UserDefinedTritonKernel":
        return KernelKind.USER
    if event["extern"]:
        return KernelKind.EXTERN
    if defined is not None:
        return defined
    return KernelKind.TRITON if event["name"].startswith("triton") else KernelKind.CPP


def _nearby_stacks(names: Iterable[str], nodes: dict[str, Node]) -> tuple[int, ...]:
    """Stacks for a kernel whose own nodes have none: those of the values it works on, nearest first."""
    frontier = [name for name in names if name in nodes]
    seen = set(frontier)
    while frontier:
        found = sorted({stack for name in frontier if (stack := nodes[name].stack) is not None})
        if found:
            return tuple(found)
        around = {name for current in frontier for name in nodes[current].inputs}
        around |= {node.name for node in nodes.values() if seen.intersection(node.inputs)}
        frontier = sorted((around - seen) & nodes.keys())
        seen |= around
    return ()


def _kernels_from_code(
    work: _Work, code: GeneratedCode, dynamo_stacks: dict[tuple[str | None, str], int]
) -> tuple[Kernel, ...]:
    """What the generated code alone tells about its kernels: names, places, and comments where there are any."""
    kernels = []
    for call in code.calls:
        definition = code.definitions.get(call.name)
        found = {stack for name in call.source_nodes if (stack := dynamo_stacks.get((work.compilation, name))) is not None}
        kernels.append(
            Kernel(
                name=call.name,
                kind=definition.kind if definition else KernelKind.EXTERN,
                nodes=(),
                stacks=tuple(sorted(found)),
                first_line=definition.first_line if definition else None,
                last_line=definition.last_line if definition else None,
                call_line=call.line,
            )
        )
    return tuple(kernels)


def _with_known_kernels(lowering: Lowering, graph: Graph, earlier: Lowering) -> Lowering:
    """A lowering from the cache, with what the same capture saw when this very code was generated.

    The code is stored under a hash of the graph, so the nodes are the same; their lines are this graph's own.
    """
    stack_of = {node.name: node.stack for node in graph.nodes}
    kernels = []
    for kernel in earlier.kernels:
        found = {stack for name in kernel.nodes if (stack := stack_of.get(name)) is not None}
        kernels.append(replace(kernel, stacks=tuple(sorted(found))))
    return replace(
        lowering, kernels=tuple(kernels), unplaced=earlier.unplaced, not_fused=earlier.not_fused, memory=earlier.memory
    )


class _Captured:
    """The stacks of Dynamo's graphs: by compilation and node name, and by compilation and innermost line."""

    def __init__(self, graphs: Iterable[Graph], stacks: StackTable) -> None:
        self.by_node: dict[tuple[str | None, str], int] = {}
        self.by_line: dict[str | None, dict[Location, set[int]]] = defaultdict(lambda: defaultdict(set))
        for graph in graphs:
            for node in graph.nodes:
                stack = stacks.stack(node.stack)
                if graph.stage is Stage.DYNAMO and node.stack is not None and stack is not None and stack.innermost is not None:
                    self.by_node[graph.compilation, node.name] = node.stack
                    self.by_line[graph.compilation][stack.innermost].add(node.stack)


def _not_fused(rows: Iterable[list[Any]], kernels: Iterable[Kernel]) -> tuple[NotFused, ...]:
    home = {name: kernel.name for kernel in kernels for name in kernel.scheduler_nodes}

    def kernel_of(name: str) -> str | None:
        # A group fused so far is named after its members: op1_op2.
        return home.get(name) or home.get(name.split("_")[0])

    return tuple(
        NotFused(first, second, reason, kernel_of(first), kernel_of(second), times)
        for first, second, reason, times in rows
        # Tried and refused at first, then fused in a later round: no longer true.
        if kernel_of(first) is None or kernel_of(first) != kernel_of(second)
    )


def _memory(event: Event | None) -> MemoryEstimate | None:
    if event is None:
        return None
    return MemoryEstimate(event["peak"], tuple(zip(event["names"], event["steps"], strict=False)))
