"""Leave out single parts of torch's compilers: one decomposition, one lowering, one pass over a graph.

Torch has switches for this, which its own bisection sets through files and environment variables. Here a function decides
instead, so that a search can run in one process and leave out any subset.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

LOWERINGS = "lowerings"
DECOMPOSITIONS = "decomposition"
PASSES = "passes"
PASS_KINDS = ("pre_grad_passes", "joint_graph_passes", "post_grad_passes")
NEEDED_PASSES = ("stable_sort", "decompose_", "fix_auto_functionalized", "view_to_reshape", "remove_profiler_ops")
"""Prefixes of the names of passes without which a graph cannot be compiled."""


@dataclass(frozen=True)
class GraphNode:
    """A node of a graph at one moment."""

    name: str
    operation: str
    original: str
    """The operator that it was decomposed from, where it is another one."""
    text: str
    inputs: tuple[str, ...]
    """Names of the nodes it reads."""
    stack_trace: str
    source: str


@dataclass(frozen=True)
class CompilerPart:
    """A step of a compiler that can be left out."""

    kind: str
    """One of the names above."""
    name: str
    """The node that is lowered, the operator that is decomposed, or the pass."""
    operation: str = ""
    """The operator, empty for a pass."""
    original: str = ""
    """The operator that was decomposed into this one, where it is another one."""
    stack_trace: str = ""
    """The stack of the line it came from, as torch stores it; in a backward, that of the forward operation."""
    source: str = ""
    """The node of Dynamo's graph it came from."""
    backward: bool = False
    location: tuple[str, int] = ("", 0)
    """File and line at the end of the stack, to distinguish two uses of one operator."""
    nodes: tuple[GraphNode, ...] = field(default=(), repr=False, compare=False)
    """For a pass: the nodes of the graph that it is about to change."""


Decide = Callable[[CompilerPart], bool]


@contextlib.contextmanager
def leave_out(decide: Decide) -> Iterator[None]:
    """Make the compilers leave out the parts for which a function returns True; aten's kernels replace lowerings.

    The function is called once for every part, in the order in which they are compiled. Graph caches are not used.
    """
    from torch._inductor import compiler_bisector

    from compile_inspect.torch_private import without_graph_caches

    bisector: Any = compiler_bisector.CompilerBisector
    original = bisector.__dict__["disable_subsystem"]

    def disable(backend: str, subsystem: str, debug_info: Callable[[], str] | None = None) -> bool:
        if subsystem not in (LOWERINGS, DECOMPOSITIONS, *PASS_KINDS) or debug_info is None:
            return False
        part = _part(PASSES if subsystem in PASS_KINDS else subsystem, debug_info)
        return decide(part) and not (part.kind == PASSES and part.name.startswith(NEEDED_PASSES))

    bisector.disable_subsystem = staticmethod(disable)
    try:
        with without_graph_caches():
            yield
    finally:
        bisector.disable_subsystem = original


def _part(kind: str, describe: Callable[[], str]) -> CompilerPart:
    name = describe()
    if kind == LOWERINGS:
        from torch._inductor.virtualized import V

        node = V.current_node
        return _of_meta(kind, str(node.name), str(node.target), node.meta)
    if kind == DECOMPOSITIONS:
        from torch.fx import traceback

        operator = name.removeprefix("<OpOverload(op='").removesuffix("')>").replace("', overload='", ".")
        return _of_meta(kind, operator, operator, dict(traceback.get_current_meta()))
    return CompilerPart(kind, name, nodes=_nodes(describe))


def _nodes(describe: Callable[[], str]) -> tuple[GraphNode, ...]:
    """The graph that a pass receives: it belongs to the observer whose method describes the pass."""
    cells = getattr(describe, "__closure__", None) or ()
    graph = next((cell.cell_contents.gm for cell in cells if hasattr(cell.cell_contents, "gm")), None)
    nodes = []
    for node in graph.graph.nodes if graph is not None else ():
        if node.op == "call_function":
            part = _of_meta("", node.name, str(node.target), node.meta)
            inputs = tuple(item.name for item in node.all_input_nodes)
            text = node.format_node() or ""
            nodes.append(GraphNode(node.name, part.operation, part.original, text, inputs, part.stack_trace, part.source))
    return tuple(nodes)


def _of_meta(kind: str, name: str, operation: str, meta: dict[str, Any]) -> CompilerPart:
    forward = meta.get("fwd_source_fn_stack")
    sources = forward or meta.get("source_fn_stack") or ()
    original = meta.get("original_aten")
    stack = str(meta.get("stack_trace") or "")
    lines = [line for line in stack.splitlines() if line.lstrip().startswith('File "')]
    file_and_line = lines[-1].split(", ") if lines else ["", "line 0"]
    return CompilerPart(
        kind,
        name,
        operation,
        "" if original is None or str(original) == operation else str(original),
        stack,
        str(sources[-1][0]) if sources else "",
        bool(forward) or bool(meta.get("autograd_backward")) or "in_grad_fn" in meta,
        (file_and_line[0].strip(), int(file_and_line[1].removeprefix("line "))),
    )


@contextlib.contextmanager
def close_transforms() -> Iterator[None]:
    """End transforms of torch.func that were begun inside and not ended, for example because of an exception."""
    from torch._C import _functorch

    depth = _functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        if _functorch.get_dynamic_layer_stack_depth() > depth:
            _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
