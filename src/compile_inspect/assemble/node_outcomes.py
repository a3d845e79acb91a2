"""What became of the nodes that no kernel computes."""

from __future__ import annotations

from collections import defaultdict

from compile_inspect.records import Fate, Graph, Node, UnplacedNode

# Operations whose result shares the memory of their input.
_VIEWS = frozenset(
    [
        "alias",
        "as_strided",
        "chunk",
        "detach",
        "diagonal",
        "expand",
        "expand_as",
        "lift_fresh",
        "narrow",
        "permute",
        "reshape",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
        "_reshape_alias",
        "_unsafe_view",
        "broadcast_in_dim",
        "reinterpret_tensor",
        "movedim",
        "flatten",
        "real",
        "view_as_real",
        "view_as_complex",
        "view_dtype",
    ]
)
_COPIES = frozenset({"copy_", "copy", "clone", "set_"})


def explain_unplaced(graph: Graph, placed: set[str]) -> tuple[UnplacedNode, ...]:
    """Every node of the graph that is in no kernel, with its fate."""
    users: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for name in node.inputs:
            users[name].append(node.name)
    nodes = {node.name: node for node in graph.nodes}
    reaches = _reaches_kernel(graph, users, placed)
    return tuple(UnplacedNode(node.name, _fate(node, nodes, users, reaches)) for node in graph.nodes if node.name not in placed)


def _reaches_kernel(graph: Graph, users: dict[str, list[str]], placed: set[str]) -> set[str]:
    """Nodes that some kernel uses, directly or through other unplaced nodes; graphs are in topological order."""
    reaching: set[str] = set()
    for node in reversed(graph.nodes):
        if any(user in placed or user in reaching for user in users[node.name]):
            reaching.add(node.name)
    return reaching


def _fate(node: Node, nodes: dict[str, Node], users: dict[str, list[str]], reaches: set[str]) -> Fate:
    if node.operation == "placeholder":
        return Fate.INPUT
    if node.operation == "output":
        return Fate.OUTPUT
    if node.operation == "get_attr":
        return Fate.CONSTANT
    name = operation_name(node.target)
    if name == "getitem":
        return Fate.ITEM
    if name in _VIEWS:
        return Fate.VIEW
    if not node.value:
        sizes = name.startswith("sym_") or not node.target.startswith(("aten.", "prims.", "torch.ops", "higher_order"))
        return Fate.SYMBOL if sizes and not name.startswith("_") else Fate.WRAPPER
    if name.startswith("copy") and len(node.inputs) == 1:  # onto itself: nothing is left to do
        return Fate.UNUSED
    if not users[node.name] and name not in _COPIES:
        return Fate.UNUSED
    return Fate.FOLDED if node.name in reaches else Fate.WRAPPER


def operation_name(target: str) -> str:
    """The bare name of an operation.

    >>> operation_name("aten.view.default")
    'view'
    >>> operation_name("operator.getitem")
    'getitem'
    """
    pieces = target.split(".")
    return pieces[1] if len(pieces) > 2 else pieces[-1]
