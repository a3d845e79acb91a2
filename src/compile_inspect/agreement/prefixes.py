"""The first operation of a graph at which a compiler goes wrong, by compiling ever shorter beginnings of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compile_inspect.agreement.comparison import compare
from compile_inspect.agreement.inputs import cloned
from compile_inspect.agreement.reference import make_reference
from compile_inspect.capture import torch_private
from compile_inspect.records.agreement import Verdict
from compile_inspect.variants import Prepared, Refused, Task

Prepare = Callable[[Task], Prepared]


def first_wrong_node(graph: Any, inputs: list[Any], prepare: Prepare, *, gradients: bool) -> Any:
    """The first node whose value, or gradient, comes out wrong when everything up to it is compiled; None if none does.

    A beginning that contains the culprit stays wrong when it grows, for all its loose ends are compared; so halving
    finds it.
    """
    nodes = _candidates(graph, inputs)
    low, high = 0, len(nodes) - 1
    if high < 0 or not is_wrong_up_to(graph, nodes, high, inputs, prepare, gradients=gradients):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_wrong_up_to(graph, nodes, middle, inputs, prepare, gradients=gradients):
            high = middle
        else:
            low = middle + 1
    return nodes[low]


def is_wrong_up_to(graph: Any, nodes: list[Any], last: int, inputs: list[Any], prepare: Prepare, *, gradients: bool) -> bool:
    """Whether the graph up to a node, compiled, differs from the same operations run eagerly."""
    beginning = beginning_of(graph, nodes[: last + 1])
    for wanted in [True, False] if gradients else [False]:
        task = Task(beginning, tuple(inputs), {}, wanted)
        reference = make_reference(task, samples=0)
        if reference.points[0].eager.error is not None:
            continue  # no gradient up to here, say
        try:
            prepared = prepare(task)
        except Refused:
            return True  # it runs eagerly, and cannot be compiled
        if compare(task, prepared, reference=reference).verdict is Verdict.DISAGREES:
            return True
    return False


def beginning_of(graph: Any, nodes: list[Any]) -> Any:
    """A graph that stops after the last of some nodes, and gives the values of those that no other of them uses."""
    import torch

    shorter = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in graph.graph.nodes:
        # Every input stays one, so that the graph is called as before.
        if node.op == "placeholder" or (node.op != "output" and nodes[-1] not in copies):
            copies[node] = shorter.node_copy(node, lambda argument: copies[argument])
    loose = [node for node in nodes if not any(user in nodes for user in node.users)]
    shorter.output(tuple(copies[node] for node in loose))
    return torch.fx.GraphModule(graph, shorter)


def _candidates(graph: Any, inputs: list[Any]) -> list[Any]:
    """Nodes that compute tensors, in order. A part between the beginning and end of a transform cannot be cut out."""
    import torch

    kinds: dict[Any, Any] = {}

    class Noting(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            kinds[n] = super().run_node(n)
            return kinds[n]

    nested = 0
    found = []
    with torch.set_grad_enabled(torch.is_grad_enabled()):  # the graph may leave it changed
        Noting(graph).run(*cloned((tuple(inputs), {}))[0])
    for node in graph.graph.nodes:
        name = str(node.target)
        nested += ("increment_nesting" in name) - ("decrement_nesting" in name)
        if node.op not in ("call_function", "call_method", "call_module") or nested:
            continue
        if torch_private.is_tensor(kinds.get(node)):
            found.append(node)
    return found
