"""Graphs at every stage, node by node, while they are alive."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from compile_inspect import torch_private
from compile_inspect.capture.collectors.base import Collector, Observations, trace_compile_id

if TYPE_CHECKING:
    from compile_inspect.capture.tap import Tap

_LITERAL_LENGTH = 120
# Where torch keeps functions, and where a user finds them.
_PUBLIC = {
    "torch._VariableFunctionsClass.": "torch.",
    "torch._C._nn.": "torch.nn.functional.",
    "torch._C._TensorBase.": "Tensor.",
}
_PUBLIC_NAMES = re.compile("^(" + "|".join(map(re.escape, _PUBLIC)) + ")")


class GraphCollector(Collector):
    """Dynamo's and AOTAutograd's graphs.

    Node by node from the live graph where it exists; the printed form comes with torch's events also when a
    cache had the result and no graph was built.
    """

    name = "graphs"
    trace_names: ClassVar[frozenset[str]] = frozenset(
        {
            "dynamo_output_graph",
            "aot_joint_graph",
            "aot_forward_graph",
            "aot_backward_graph",
            "aot_inference_graph",
            "inductor_post_grad_graph",
        }
    )

    def observations(self) -> Observations:
        """Observe the call of the backend and AOTAutograd's graphs."""
        return (
            (torch_private.CALL_BACKEND, self._on_call_backend, True),
            (torch_private.LOG_JOINT, self._on_joint, True),
            (torch_private.LOG_PARTITIONED, self._on_partitioned, True),
            (torch_private.TRACE_INFERENCE, self._on_inference, False),
        )

    def on_trace(self, name: str, metadata: dict[str, Any], payload: Any) -> None:
        """Keep the printed form of a graph."""
        if payload:
            self.tap.emit("graph text", {"event": name, "text": payload}, compilation=trace_compile_id(metadata))

    def _on_call_backend(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        emit_graph(self.tap, "graph", args[1].graph, {"event": "dynamo_output_graph"})

    def _on_joint(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        emit_graph(self.tap, "graph", args[0].graph, {"event": "aot_joint_graph"})

    def _on_partitioned(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        emit_graph(self.tap, "graph", args[0].graph, {"event": "aot_forward_graph"})
        emit_graph(self.tap, "graph", args[1].graph, {"event": "aot_backward_graph"})

    def _on_inference(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        module = result[0] if isinstance(result, tuple) else result
        graph = getattr(module, "graph", None)
        if graph is not None:
            emit_graph(self.tap, "graph", graph, {"event": "aot_inference_graph"})


def emit_graph(tap: Tap, kind: str, graph: Any, data: dict[str, Any]) -> None:
    """Emit one event with every node of an FX graph."""
    nodes = [describe_node(tap, node) for node in graph.nodes]
    stacks = {node["stack"] for node in nodes if "stack" in node}
    tap.emit(kind, {**data, "nodes": nodes}, stacks=sorted(stacks))


def describe_node(tap: Tap, node: Any) -> dict[str, Any]:
    """One FX node as plain data; fields that are empty are left out."""
    description: dict[str, Any] = {"name": node.name, "operation": node.op, "target": describe_target(node)}
    inputs = [item.name for item in node.all_input_nodes]
    if inputs:
        description["inputs"] = inputs
    if node.args or node.kwargs:
        pieces = [format_argument(item) for item in node.args]
        pieces += [f"{key}={format_argument(item)}" for key, item in node.kwargs.items()]
        description["arguments"] = ", ".join(pieces)
    value = describe_value(node.meta.get("val", node.meta.get("example_value")))
    if value:
        description["value"] = value
    stack = node.meta.get("stack_trace") or node.stack_trace
    if stack:
        description["stack"] = tap.intern(stack)
    modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if modules:
        innermost = list(modules.values())[-1]
        description["module"] = str(innermost[0] if isinstance(innermost, tuple) else innermost)
    return description


def describe_target(node: Any) -> str:
    """The operation a node calls, named as a user would write it."""
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    target = node.target
    if node.op != "call_function" or isinstance(target, str):
        return str(target)
    if hasattr(target, "overloadpacket") or hasattr(target, "_qualified_op_name"):
        return str(target)
    module = str(getattr(target, "__module__", "") or "").removeprefix("_")
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or str(target)
    full = f"{module}.{name}" if module and module != "builtins" else str(name)
    return _PUBLIC_NAMES.sub(lambda match: _PUBLIC[match[0]], full)


def format_argument(value: Any) -> str:
    """An argument as short text; tensors are never printed."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _short(repr(value))
    if isinstance(value, (list, tuple)):
        inner = ", ".join(format_argument(item) for item in value)
        return _short(f"[{inner}]" if isinstance(value, list) else f"({inner})")
    if isinstance(value, dict):
        return _short("{" + ", ".join(f"{key!r}: {format_argument(item)}" for key, item in value.items()) + "}")
    if isinstance(value, slice):
        return f"{format_argument(value.start)}:{format_argument(value.stop)}:{format_argument(value.step)}"
    if hasattr(value, "op") and hasattr(value, "meta"):  # another node
        return str(value.name)
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device", "layout", "memory_format", "SymInt", "SymFloat"):
        return _short(str(value))
    return f"<{kind.__name__}>"


def describe_value(value: Any) -> list[list[Any]]:
    """Shape, dtype, device and strides of every tensor in a node's value."""
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in describe_value(part)]
    if not (hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "device")):
        return []
    try:
        strides = _sizes(value.stride())
    except (RuntimeError, NotImplementedError):  # nested and sparse tensors have none
        strides = []
    return [[_sizes(value.shape), str(value.dtype).removeprefix("torch."), str(value.device), strides]]


def _sizes(sizes: Iterable[Any]) -> list[int | str]:
    # A symbolic size is turned to text: comparing or converting it would add a guard to the user's program.
    return [size if type(size) is int else str(size) for size in sizes]


def _short(text: str) -> str:
    return text if len(text) <= _LITERAL_LENGTH else text[: _LITERAL_LENGTH - 1] + "…"
