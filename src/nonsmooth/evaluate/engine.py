"""Backward passes with little overhead. Only this module uses private names of torch.

`torch.autograd.grad` validates every argument, which takes a quarter of the time of a small backward pass, and on the first
call imports a package for symbolic shapes, which takes half a second. If the outputs are plain tensors and the weights are
known to fit, neither is needed. If the private names are missing, `torch.autograd.grad` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

try:
    from torch import _add_batch_dim as _batch
    from torch import _remove_batch_dim as _unbatch
    from torch._C import _functorch
    from torch._C import _vmapmode_decrement_nesting as _leave
    from torch._C import _vmapmode_increment_nesting as _enter
    from torch.autograd.graph import _engine_run_backward

    _run: Callable[..., Any] | None = _engine_run_backward
except ImportError:
    _run = None

MIN_SUMS_FOR_VMAP = 64
"""From this number of weighted sums on, torch's newer batching (functorch) is faster: its rule combines many matrix-vector
products into one matrix product, 18 times as fast for 600 sums of 300 variables. For a handful of sums, the older batching
takes three quarters of the time."""


def backward(
    outputs: Sequence[Tensor], weights: Sequence[Tensor], leaves: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor]:
    """Gradients of the weighted sum of the outputs; weights have the shape of their output, and the graph is retained.

    With `create_graph`, the gradients can be differentiated again.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> backward([(x**2).sum()], [torch.tensor(3.0)], [x])
    [tensor([ 6., 12.])]
    """
    if _run is None or any(type(output) is not Tensor for output in outputs):
        parts = torch.autograd.grad(outputs, leaves, weights, retain_graph=True, create_graph=create_graph, allow_unused=True)
    else:
        parts = _run(tuple(outputs), tuple(weights), True, create_graph, tuple(leaves), True, accumulate_grad=False)
    return [torch.zeros_like(leaf) if part is None else part for part, leaf in zip(parts, leaves, strict=True)]


def sensitivities(f: Tensor, leaves: Sequence[Tensor], nodes: Sequence[Node]) -> list[Tensor | None]:
    """The gradients of f with respect to leaves and to the first outputs of nodes of its graph, which is retained.

    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> y = abs(x)
    >>> sensitivities((y**2).sum(), [x], [y.grad_fn])
    [tensor([ 2., -4.]), tensor([2., 4.])]
    """
    inputs: Any = (*leaves, *(GradientEdge(node, 0) for node in nodes))
    if _run is None or type(f) is not Tensor:
        return list(torch.autograd.grad(f, inputs, retain_graph=True, allow_unused=True))
    return list(_run((f,), (torch.ones_like(f),), True, False, inputs, True, accumulate_grad=False))


def batched_backward(output: Tensor, weights: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of several weighted sums of one output, in one pass: weights and gradients have an extra dimension.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> batched_backward(x**2, torch.eye(2), [x])
    [tensor([[2., 0.],
            [0., 4.]])]
    """
    return [
        # torch returns None for an unused variable, and a gradient without the leading dimension for a constant
        torch.zeros((len(weights), *leaf.shape), dtype=leaf.dtype, device=leaf.device) if part is None else part
        for part, leaf in zip(_batched(output, weights, tuple(leaves)), leaves, strict=True)
    ]


def batched_sensitivities(
    output: Tensor, weights: Tensor, leaves: Sequence[Tensor], nodes: Sequence[Node]
) -> list[Tensor | None]:
    """The gradients of several weighted sums of one output with respect to leaves and to the first outputs of nodes.

    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> y = abs(x)
    >>> batched_sensitivities(torch.stack([y.sum(), 3 * y[0]]), torch.eye(2), [x], [y.grad_fn])[1]
    tensor([[1., 1.],
            [3., 0.]])
    """
    return list(_batched(output, weights, (*leaves, *(GradientEdge(node, 0) for node in nodes))))


def _batched(output: Tensor, weights: Tensor, inputs: Any) -> Sequence[Tensor | None]:
    gradients: Sequence[Tensor | None]
    if _run is None or type(output) is not Tensor:
        gradients = torch.autograd.grad(
            [output], inputs, [weights], retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        return gradients
    if len(weights) >= MIN_SUMS_FOR_VMAP:
        level = _functorch._vmap_increment_nesting(len(weights), "error")
        try:
            batch = _functorch._add_batch_dim(weights, 0, level)
            parts = _run((output,), (batch,), True, False, inputs, True, accumulate_grad=False)
            gradients = [None if part is None else _functorch._remove_batch_dim(part, level, len(weights), 0) for part in parts]
        finally:
            _functorch._vmap_decrement_nesting()
    else:
        level = _enter()  # like `is_grads_batched`, without flattening and unflattening structures
        try:
            parts = _run((output,), (_batch(weights, 0, level),), True, False, inputs, True, accumulate_grad=False)
            gradients = [None if part is None else _unbatch(part, level, len(weights), 0) for part in parts]
        finally:
            _leave()
    return gradients
