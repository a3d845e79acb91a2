"""Run the backward pass of a callable's result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compile_inspect.errors import TargetError


def run_backward(result: Any, *, required: bool) -> bool:
    """Run the backward pass of a result; True if the function had already run it and its saved tensors are freed."""
    import torch

    outputs = [tensor for tensor in _tensors(result) if tensor.requires_grad and tensor.grad_fn is not None]
    leaves = list(_leaves(outputs))
    if not leaves:
        if required:
            raise TargetError("gradients were requested (gradients=True), but no output requires a gradient")
        return False
    try:
        # `grad` instead of `backward`, so that the user's .grad fields do not change.
        torch.autograd.grad(outputs, leaves, [torch.ones_like(output) for output in outputs], allow_unused=True)
    except RuntimeError as error:
        if "backward through the graph a second time" not in str(error):
            raise
        return True
    return False


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))


def _leaves(outputs: list[Any]) -> Iterator[Any]:
    """The tensors that the backward pass of `outputs` reaches: parameters and inputs that require a gradient."""
    visited, pending = set(), [output.grad_fn for output in outputs]
    while pending:
        node = pending.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        pending.extend(next_node for next_node, _ in node.next_functions)
