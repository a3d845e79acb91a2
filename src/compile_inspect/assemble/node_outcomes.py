"""What happened to the nodes that no kernel computes."""

from __future__ import annotations

from collections import defaultdict

from compile_inspect.records import Graph, Node, NodeOutcome, UnplacedNode

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
    """All nodes of the graph that are in no kernel, with their outcomes."""
    users: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for name in node.inputs:
            users[name].append(node.name)
    nodes = {node.name: node for node in graph.nodes}
    used_by_kernels = _used_by_kernels(graph, users, placed)
    return tuple(
        UnplacedNode(node.name, _outcome(node, nodes, users, used_by_kernels))
        for node in graph.nodes
        if node.name not in placed
    )


def _used_by_kernels(graph: Graph, users: dict[str, list[str]], placed: set[str]) -> set[str]:
    """Nodes that a kernel uses, directly or through other unplaced nodes. Graphs are in topological order."""
    used_names: set[str] = set()
    for node in reversed(graph.nodes):
        if any(user in placed or user in used_names for user in users[node.name]):
            used_names.add(node.name)
    return used_names


def _outcome(node: Node, nodes: dict[str, Node], users: dict[str, list[str]], used_by_kernels: set[str]) -> NodeOutcome:
    if node.operation == "placeholder":
        return NodeOutcome.INPUT
    if node.operation == "output":
        return NodeOutcome.OUTPUT
    if node.operation == "get_attr":
        return NodeOutcome.CONSTANT
    name = operation_name(node.target)
    if name == "getitem":
        return NodeOutcome.ITEM
    if name in _VIEWS:
        return NodeOutcome.VIEW
    if not node.value:
        sizes = name.startswith("sym_") or not node.target.startswith(("aten.", "prims.", "torch.ops", "higher_order"))
        return NodeOutcome.SYMBOL if sizes and not name.startswith("_") else NodeOutcome.WRAPPER
    if name.startswith("copy") and len(node.inputs) == 1:  # a copy onto itself does nothing
        return NodeOutcome.UNUSED
    if not users[node.name] and name not in _COPIES:
        return NodeOutcome.UNUSED
    return NodeOutcome.FOLDED if node.name in used_by_kernels else NodeOutcome.WRAPPER


def operation_name(target: str) -> str:
    """The bare name of an operation.

    >>> operation_name("aten.view.default")
    'view'
    >>> operation_name("operator.getitem")
    'getitem'
    """
    pieces = target.split(".")
    return pieces[1] if len(pieces) > 2 else pieces[-1]
