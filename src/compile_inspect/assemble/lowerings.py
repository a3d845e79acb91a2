"""Assemble everything that Inductor generated from each graph."""

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
    Stage,
    UnfusedPair,
)


@dataclass
class _LoweringFacts:
    """The facts about one lowering, collected from events."""

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

    The event of a printed post-grad graph immediately precedes its lowering. Code without a lowering was loaded from a cache.
    """
    all_facts: list[_LoweringFacts] = []
    numbered: dict[int, _LoweringFacts] = {}
    printed: dict[tuple[str | None, int], list[str]] = defaultdict(list)
    for event in events:
        kind, thread = event["kind"], (event.get("compilation"), event.get("thread", 0))
        if kind == "graph text" and event["event"] == "inductor_post_grad_graph":
            printed[thread].append(event["text"])
        elif kind == "lowering":
            facts = numbered.get(event["lowering"])
            if facts is None:
                facts = numbered[event["lowering"]] = _LoweringFacts(event["compilation"], _direction(event))
                facts.text = printed[thread].pop() if printed[thread] else ""
                all_facts.append(facts)
            prefix = f"{event['path']}/" if event["path"] else ""
            facts.nodes += decode_nodes(event["nodes"], stacks, prefix)
        elif kind == "code":
            owner = numbered.get(event["lowering"]) if event["lowering"] is not None else None
            if owner is None:
                text = printed[thread].pop(0) if printed[thread] else ""
                owner = _LoweringFacts(event["compilation"], Direction.UNKNOWN, text=text, from_cache=True)
                all_facts.append(owner)
            # If the graph already has code, this is a second file.
            if event["text"] not in owner.code:
                owner.code = f"{owner.code}\n{event['text']}" if owner.code else event["text"]
            owner.path = owner.path or event["path"]
        elif kind in ("kernel", "not fused", "memory") and event["lowering"] in numbered:
            _read_detail(numbered[event["lowering"]], event)
    captured = _CapturedStacks(earlier_graphs, stacks)
    finished: list[tuple[Lowering, Graph]] = []
    lowerings_by_path: dict[str, Lowering] = {}
    for number, facts in enumerate(all_facts):
        lowering, graph = _finish(number, facts, stacks, call_stacks.get(facts.compilation or ""), captured)
        if lowering.from_cache and lowering.code_path in lowerings_by_path:
            lowering = _with_known_kernels(lowering, graph, lowerings_by_path[lowering.code_path])
        elif lowering.code_path:
            lowerings_by_path.setdefault(lowering.code_path, lowering)
        finished.append((lowering, graph))
    return finished


def _read_detail(facts: _LoweringFacts, event: Event) -> None:
    if event["kind"] == "kernel":
        facts.kernels.append(event)
    elif event["kind"] == "not fused":
        facts.not_fused += event["rows"]
    else:
        facts.memory = event


def _finish(
    number: int, facts: _LoweringFacts, stacks: StackTable, call_stack: int | None, captured: _CapturedStacks
) -> tuple[Lowering, Graph]:
    code = read_code(facts.code)
    direction = facts.direction if facts.direction is not Direction.UNKNOWN else code.direction
    identifier = f"{facts.compilation}:post_grad:{number}"
    graph = Graph(identifier, facts.compilation, Stage.POST_GRAD, direction, facts.nodes, facts.text)
    if not graph.nodes:
        graph = from_text(graph, stacks)
        graph = replace(graph, nodes=widen_stacks(graph.nodes, stacks, captured.by_line.get(facts.compilation, {})))
    graph = with_call_stack(graph, call_stack, stacks)
    kernels = (
        _kernels_from_code(facts, code, captured.by_node)
        if facts.from_cache
        else _kernels(facts, code, graph, stacks, call_stack)
    )
    placed = {name for kernel in kernels for name in kernel.nodes}
    lowering = Lowering(
        id=f"{facts.compilation}:lowering:{number}",
        compilation=facts.compilation,
        direction=direction,
        graph=identifier,
        code=facts.code,
        code_path=facts.path,
        kernels=kernels,
        unplaced_nodes=() if facts.from_cache else explain_unplaced(graph, placed),
        unfused_pairs=_unfused_pairs(facts.not_fused, kernels),
        memory=_memory(facts.memory),
        from_cache=facts.from_cache,
    )
    return lowering, graph


def _direction(event: Event) -> Direction:
    if event["backward"]:
        return Direction.BACKWARD
    return Direction.INFERENCE if event["inference"] else Direction.FORWARD


def _kernels(
    facts: _LoweringFacts, code: GeneratedCode, graph: Graph, stacks: StackTable, call_stack: int | None
) -> tuple[Kernel, ...]:
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in code.calls:
        calls[call.name].append(call)
    nodes = {node.name: node for node in graph.nodes}
    kernels = []
    for event in facts.kernels:
        prefix = f"{event['path']}/" if event["path"] else ""
        # A kernel of a branch may also compute nodes of the enclosing graph.
        names = tuple(prefix + name if prefix + name in nodes else name for name in event["nodes"])
        numbers = (stacks.with_call(stacks.number(index), call_stack) for index in event["stacks"])
        known = {number for number in numbers if number is not None}
        own_calls = calls.get(event["name"], [])
        definition = code.definitions.get(event["name"])
        kernels.append(
            Kernel(
                name=event["name"],
                kind=_kind(event, definition.kind if definition else None),
                nodes=names,
                stacks=tuple(sorted(known)) or _nearby_stacks(names, nodes),
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
    """Stacks for a kernel whose own nodes have none: those of the values it all_facts on, nearest first."""
    frontier = [name for name in names if name in nodes]
    visited = set(frontier)
    while frontier:
        numbers = sorted({stack for name in frontier if (stack := nodes[name].stack) is not None})
        if numbers:
            return tuple(numbers)
        neighbors = {name for current in frontier for name in nodes[current].inputs}
        neighbors |= {node.name for node in nodes.values() if visited.intersection(node.inputs)}
        frontier = sorted((neighbors - visited) & nodes.keys())
        visited |= neighbors
    return ()


def _kernels_from_code(
    facts: _LoweringFacts, code: GeneratedCode, dynamo_stacks: dict[tuple[str | None, str], int]
) -> tuple[Kernel, ...]:
    """The kernels, from the generated code only: names, lines, and facts from comments if there are any."""
    kernels = []
    for call in code.calls:
        definition = code.definitions.get(call.name)
        numbers = {stack for name in call.source_nodes if (stack := dynamo_stacks.get((facts.compilation, name))) is not None}
        kernels.append(
            Kernel(
                name=call.name,
                kind=definition.kind if definition else KernelKind.EXTERN,
                nodes=(),
                stacks=tuple(sorted(numbers)),
                first_line=definition.first_line if definition else None,
                last_line=definition.last_line if definition else None,
                call_line=call.line,
            )
        )
    return tuple(kernels)


def _with_known_kernels(lowering: Lowering, graph: Graph, earlier: Lowering) -> Lowering:
    """A lowering from the cache, with the kernels that the same capture recorded when this code was generated.

    The cache key is a hash of the graph, so the nodes are the same; their stacks are taken from this graph.
    """
    stack_of = {node.name: node.stack for node in graph.nodes}
    kernels = []
    for kernel in earlier.kernels:
        numbers = {stack for name in kernel.nodes if (stack := stack_of.get(name)) is not None}
        kernels.append(replace(kernel, stacks=tuple(sorted(numbers))))
    return replace(
        lowering,
        kernels=tuple(kernels),
        unplaced_nodes=earlier.unplaced_nodes,
        unfused_pairs=earlier.unfused_pairs,
        memory=earlier.memory,
    )


class _CapturedStacks:
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


def _unfused_pairs(rows: Iterable[list[Any]], kernels: Iterable[Kernel]) -> tuple[UnfusedPair, ...]:
    kernel_names = {name: kernel.name for kernel in kernels for name in kernel.scheduler_nodes}

    def kernel_of(name: str) -> str | None:
        # An already fused group is named after its members: op1_op2.
        return kernel_names.get(name) or kernel_names.get(name.split("_")[0])

    return tuple(
        UnfusedPair(first, second, reason, kernel_of(first), kernel_of(second), times)
        for first, second, reason, times in rows
        # Omit pairs that were fused in a later round.
        if kernel_of(first) is None or kernel_of(first) != kernel_of(second)
    )


def _memory(event: Event | None) -> MemoryEstimate | None:
    if event is None:
        return None
    return MemoryEstimate(event["peak"], tuple(zip(event["names"], event["steps"], strict=False)))
