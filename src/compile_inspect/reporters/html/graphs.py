"""Graphs of every stage, and the kernels that Inductor generated from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compile_inspect.records import Graph, Inspection, Kernel, KernelKind, Lowering, Node
from compile_inspect.reporters.html.highlighting import highlighted
from compile_inspect.reporters.html.texts import words
from compile_inspect.wording.plain import shorten

Data = dict[str, Any]

_KINDS = {"placeholder": "input", "get_attr": "attribute", "output": "output"}
_MAX_ARGUMENT_CHARACTERS = 300


def graphs_of(inspection: Inspection, graphs: Sequence[Graph]) -> list[Data]:
    """The graphs to show, with nodes by number."""
    lowerings = {lowering.graph: lowering for lowering in inspection.lowerings if lowering.graph is not None}
    return [_graph(graph, lowerings.get(graph.id), len(inspection.stacks)) for graph in graphs]


def _graph(graph: Graph, lowering: Lowering | None, stacks: int) -> Data:
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    kernels: dict[str, list[int]] = {}
    for number, kernel in enumerate(lowering.kernels if lowering is not None else ()):
        for name in kernel.nodes:
            kernels.setdefault(name, []).append(number)
    fates = {} if lowering is None else {item.name: item.fate.value for item in lowering.unplaced}
    return {
        "id": words(graph.id),
        "compilation": None if graph.compilation is None else words(graph.compilation),
        "stage": graph.stage.name.lower(),
        "title": graph.stage.value,
        "direction": graph.direction.name.lower(),
        "from_text": graph.from_text,
        "nodes": [_node(node, numbers, kernels, fates, stacks) for node in graph.nodes],
    }


def _node(node: Node, numbers: dict[str, int], kernels: dict[str, list[int]], fates: dict[str, str], stacks: int) -> Data:
    # A damaged capture may refer to a stack that does not exist.
    stack = node.stack if node.stack is not None and 0 <= node.stack < stacks else None
    return {
        "name": words(node.name),
        "kind": _KINDS.get(node.operation, "call"),
        "target": words(node.target),
        "inputs": [numbers[name] for name in dict.fromkeys(node.inputs) if name in numbers],
        "arguments": shorten(node.arguments, _MAX_ARGUMENT_CHARACTERS),
        "type": words(", ".join(map(str, node.value))),
        "stack": stack,
        "module": words(node.module),
        "kernels": kernels.get(node.name, []),
        "fate": fates.get(node.name, ""),
    }


def lowerings_of(inspection: Inspection, graphs: Sequence[Graph], *, with_code: bool = True) -> list[Data]:
    """Every lowering with its kernels, with or without the generated modules."""
    places = {graph.id: number for number, graph in enumerate(graphs)}
    by_id = {graph.id: graph for graph in graphs}
    return [
        _lowering(item, places.get(item.graph or ""), by_id.get(item.graph or ""), len(inspection.stacks), with_code)
        for item in inspection.lowerings
    ]


def _lowering(lowering: Lowering, graph: int | None, nodes: Graph | None, stacks: int, with_code: bool) -> Data:
    numbers = {node.name: number for number, node in enumerate(nodes.nodes)} if nodes is not None else {}
    launch = _launches(lowering)
    # The estimate names a step by its scheduler nodes, joined.
    steps = {"_".join(kernel.scheduler_nodes): number for number, kernel in enumerate(lowering.kernels)}
    language = _language(lowering.kernels)
    return {
        "id": words(lowering.id),
        "compilation": None if lowering.compilation is None else words(lowering.compilation),
        "direction": lowering.direction.name.lower(),
        "graph": graph,
        "language": language,
        "code": _module(lowering) if with_code else [],
        "code_path": words(lowering.code_path),
        "kernels": [_kernel(kernel, numbers, stacks) for kernel in lowering.kernels],
        "not_fused": [
            {
                "first": launch(item.first, item.first_kernel),
                "second": launch(item.second, item.second_kernel),
                "names": [words(item.first), words(item.second)],
                "reason": words(item.reason),
                "times": item.times,
            }
            for item in lowering.not_fused
        ],
        "memory": None
        if lowering.memory is None
        else {
            "peak": lowering.memory.peak_bytes,
            "steps": [[words(name), size, steps.get(name)] for name, size in lowering.memory.steps],
        },
        "from_cache": lowering.from_cache,
    }


def _launches(lowering: Lowering) -> Callable[[str, str | None], int | None]:
    """A function from the scheduler's names to launches; identical layers launch kernels with the same name."""
    by_node: dict[str, int] = {}
    by_name: dict[str, list[int]] = {}
    for number, kernel in enumerate(lowering.kernels):
        by_name.setdefault(kernel.name, []).append(number)
        for name in (*kernel.scheduler_nodes, "_".join(kernel.scheduler_nodes)):
            by_node[name] = number

    def launch(name: str, kernel: str | None) -> int | None:
        # A node that was fused later is named by its parts.
        for candidate in (name, name.partition("_")[0]):
            if candidate in by_node:
                return by_node[candidate]
        same = by_name.get(kernel or "", [])
        return same[0] if len(same) == 1 else None

    return launch


def _language(kernels: Sequence[Kernel]) -> str:
    kinds = {kernel.kind for kernel in kernels}
    if KernelKind.TRITON in kinds or KernelKind.TEMPLATE in kinds:
        return "triton"
    return "cpp" if KernelKind.CPP in kinds else "python"


_SOURCE_LANGUAGES = {KernelKind.CPP: "cpp", KernelKind.TRITON: "python", KernelKind.TEMPLATE: "python"}


def _module(lowering: Lowering) -> list[list[str | int]]:
    """The generated module. Kernels are strings in the Python module, highlighted in their own language."""
    lines = list(highlighted(lowering.code)) if lowering.code else []
    text = lowering.code.replace("\r\n", "\n").split("\n")
    for kernel in lowering.kernels:
        language = _SOURCE_LANGUAGES.get(kernel.kind)
        if language is None or not kernel.first_line or not kernel.last_line or not kernel.last_line <= len(lines):
            continue
        first, last = _inside(text, kernel.first_line, kernel.last_line)
        part = highlighted("\n".join(text[first - 1 : last]), language)[: last - first + 1]
        # The highlighter drops an empty last line, but line numbers must not change.
        lines[first - 1 : last] = part + [[""]] * (last - first + 1 - len(part))
    return lines


def _inside(text: list[str], first: int, last: int) -> tuple[int, int]:
    """The lines between the quotes around a kernel; all lines if there are no quotes.

    >>> _inside(["k = cpp('''", "int x;", "''')"], 1, 3)
    (2, 2)
    """
    quoted = [number for number in range(first, last + 1) if "'''" in text[number - 1]]
    return (quoted[0] + 1, quoted[-1] - 1) if len(quoted) > 1 and quoted[-1] > quoted[0] + 1 else (first, last)


def _kernel(kernel: Kernel, numbers: dict[str, int], stacks: int) -> Data:
    has_lines = kernel.first_line is not None and kernel.last_line is not None
    return {
        "name": words(kernel.name),
        "kind": kernel.kind.name.lower(),
        "title": kernel.kind.value,
        "nodes": [numbers[name] for name in kernel.nodes if name in numbers],
        "fuses": len(kernel.nodes),
        "stacks": [index for index in kernel.stacks if 0 <= index < stacks],
        "lines": [kernel.first_line, kernel.last_line] if has_lines else None,
        "call": kernel.call_line,
    }
