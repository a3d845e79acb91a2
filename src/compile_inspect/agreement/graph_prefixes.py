"""Compile parts of a graph by themselves: the shortest prefix that a compiler gets wrong, and one operation alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compile_inspect import torch_private
from compile_inspect.agreement.comparison import compare
from compile_inspect.agreement.inputs import clone_inputs, clone_tensor
from compile_inspect.agreement.reference import make_reference
from compile_inspect.agreement.run_outcome import RunOutcome, observe
from compile_inspect.agreement.source_lines import line_of_stack
from compile_inspect.records.agreement import Verdict
from compile_inspect.variants import Prepared, RefusalError, Task

Prepare = Callable[[Task], Prepared]
NO_GRADIENT_ERROR = "TargetError"
"""What a run raises when none of its results depends on a tensor that requires a gradient."""


def first_wrong_node(graph: Any, inputs: list[Any], prepare: Prepare, *, gradients: bool) -> Any:
    """The first node whose value or gradient is wrong when everything up to it is compiled; None if there is none.

    All unused values of a prefix are compared, so a prefix with the culprit stays wrong when it grows, and bisection
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
    return _is_wrong(prefix_graph(graph, nodes[: last + 1]), tuple(inputs), prepare, gradients=gradients)


def is_wrong_alone(graph: Any, node: Any, inputs: list[Any], prepare: Prepare, *, gradients: bool) -> bool | None:
    """Whether one operation, compiled alone on eager's values, is wrong; None where it cannot be compiled alone."""
    import torch

    values = _arguments(graph, node, inputs)
    if values is None:
        return None
    single = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    leaves = []
    for item, value in values.items():
        if torch_private.is_tensor(value):
            copies[item] = single.placeholder(item.name)
            leaves.append(value)
    try:
        single.output((single.node_copy(node, lambda argument: copies.get(argument, values[argument])),))
        module = torch.fx.GraphModule(graph, single)
        return _is_wrong(module, tuple(leaves), prepare, gradients=gradients, signs=True)
    except Exception:  # an operation may make no sense by itself, such as one half of a transform
        return None


def _is_wrong(module: Any, inputs: tuple[Any, ...], prepare: Prepare, *, gradients: bool, signs: bool = False) -> bool:
    """Whether a compiled graph differs from eager; with `signs`, zeros with a different sign count too.

    Such zeros are not errors by themselves, and a sum in another order produces them; but a later operation, such as a
    reciprocal, may turn them into errors.
    """
    for with_gradients in [True, False] if gradients else [False]:
        task = Task(module, inputs, {}, with_gradients)
        reference = make_reference(task, samples=0)
        raised = reference.points[0].eager.error
        if raised is not None and raised.startswith(NO_GRADIENT_ERROR):
            continue
        try:
            prepared = prepare(task)
        except RefusalError:
            if raised is None:
                return True  # eager runs it, but it cannot be compiled
            continue
        if raised is not None or compare(task, prepared, reference=reference).verdict is Verdict.DISAGREES:
            return True
        if signs and _zero_signs_differ(reference.points[0].eager, observe(task, prepared.run, (inputs, {}), 0)):
            return True
    return False


def _zero_signs_differ(eager: RunOutcome, outcome: RunOutcome) -> bool:
    """Whether the outcome has zeros whose sign differs from eager's."""
    for name, value in eager.values.items():
        other = outcome.values.get(name)
        if other is None or not torch_private.is_tensor(other) or not other.is_floating_point():
            continue
        if bool(((value == 0) & (other == 0) & (value.signbit() != other.signbit())).any()):
            return True
    return False


def prefix_graph(graph: Any, nodes: list[Any]) -> Any:
    """A graph that stops after the last of some nodes, and returns the values of those that no other of them uses."""
    import torch

    shorter = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    for node in graph.graph.nodes:
        # Keep every input, so that the graph is called as before.
        if node.op == "placeholder" or (node.op != "output" and nodes[-1] not in copies):
            copies[node] = shorter.node_copy(node, lambda argument: copies[argument])
    loose = [node for node in nodes if not any(user in nodes for user in node.users)]
    shorter.output(tuple(copies[node] for node in loose))
    return torch.fx.GraphModule(graph, shorter)


def node_named(graph: Any, name: str) -> Any:
    """The node of a graph with a given name; None if there is none."""
    return next((node for node in graph.graph.nodes if node.name == name), None)


def node_of_source(graph: Any, source: str, stack_trace: str) -> Any:
    """The node of Dynamo's graph that later graphs know under a name (nodes are renamed after the user's variables).

    Where a function makes several graphs, the names start again in each; the lines do not.
    """
    line = line_of_stack(stack_trace)
    for node in graph.graph.nodes:
        names = node.meta.get("source_fn_stack") or [(node.name, None)]
        node_line = line_of_stack(node.meta.get("stack_trace"))
        if names[-1][0] == source and (
            line is None or node_line is None or (node_line.file, node_line.line) == (line.file, line.line)
        ):
            return node
    return None


def _leaf(value: Any) -> Any:
    """A leaf tensor with the same contents, which requires a gradient if the original does."""
    return clone_tensor(value.detach()).requires_grad_(bool(value.requires_grad))


def _interpret_values(
    graph: Any, inputs: list[Any], before: Callable[[Any, dict[Any, Any]], None] | None = None
) -> dict[Any, Any]:
    """The value of every node of a graph when it runs eagerly; None for the first node that raises, which is the last.

    `before` is called with every node that is about to run, and with the values so far.
    """
    import torch

    values: dict[Any, Any] = {}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            if before is not None:
                before(n, values)
            values[n] = super().run_node(n)
            return values[n]

    # The graph may leave the grad mode changed, and eager may raise.
    with torch.set_grad_enabled(torch.is_grad_enabled()), torch_private.close_transforms():
        try:
            Recorder(graph, garbage_collect_values=False).run(*clone_inputs((tuple(inputs), {}))[0])
        except Exception:
            values[_first_missing(graph, values)] = None
    return values


def _arguments(graph: Any, node: Any, inputs: list[Any]) -> dict[Any, Any] | None:
    """The arguments of one node when the graph runs eagerly, copied just before: later nodes may change them in place.

    None where the node does not run, or runs within a transform of torch.func.
    """
    if _depths(graph)[node]:
        return None
    arguments: dict[Any, Any] = {}

    def note(next_node: Any, values: dict[Any, Any]) -> None:
        if next_node is node:
            for item in node.all_input_nodes:
                arguments[item] = _leaf(values[item]) if torch_private.is_tensor(values[item]) else values[item]

    _interpret_values(graph, inputs, note)
    return arguments if len(arguments) == len(node.all_input_nodes) else None


def _first_missing(graph: Any, values: dict[Any, Any]) -> Any:
    return next(node for node in graph.graph.nodes if node not in values)


def _candidates(graph: Any, inputs: list[Any]) -> list[Any]:
    """Nodes that compute tensors, or raise, in order, except inside a transform, which cannot be cut."""
    values = _interpret_values(graph, inputs)
    last = list(values)[-1]
    depths = _depths(graph)
    candidates = []
    for node in graph.graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module") or depths[node] or node not in values:
            continue
        if torch_private.is_tensor(values[node]) or (values[node] is None and node is last):
            candidates.append(node)
    return candidates


def _depths(graph: Any) -> dict[Any, int]:
    """The number of torch.func transforms that each node runs within."""
    depth = 0
    depths: dict[Any, int] = {}
    for node in graph.graph.nodes:
        name = str(node.target)
        depth += ("increment_nesting" in name) - ("decrement_nesting" in name)
        depths[node] = depth
    return depths
