"""Backward passes with little around them. Private names of torch that the solver uses are in this module alone.

`torch.autograd.grad` looks at every argument anew, which takes a quarter of a small backward pass, and imports a package
for symbolic shapes the first time, which takes half a second. Where the outputs are plain tensors and the weights are known
to fit, neither is needed. If torch has changed, `torch.autograd.grad` is called.
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
"""From so many weighted sums on torch's newer batching is faster: its rule makes one product of two matrices of many products
of a matrix and a vector, 18 times as fast for 600 sums of 300 variables. For a handful the older one takes three quarters of
the time."""


def backward(
    outputs: Sequence[Tensor], weights: Sequence[Tensor], leaves: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor]:
    """Gradients of the sum of the outputs, each times its weights, which have its shape; the graph is kept.

    With `create_graph` they can be differentiated once more.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> backward([(x**2).sum()], [torch.tensor(3.0)], [x])
    [tensor([ 6., 12.])]
    """
    if _run is None or any(type(output) is not Tensor for output in outputs):
        found = torch.autograd.grad(outputs, leaves, weights, retain_graph=True, create_graph=create_graph, allow_unused=True)
    else:
        found = _run(tuple(outputs), tuple(weights), True, create_graph, tuple(leaves), True, accumulate_grad=False)
    return [torch.zeros_like(leaf) if part is None else part for part, leaf in zip(found, leaves, strict=True)]


def sensitivities(f: Tensor, leaves: Sequence[Tensor], nodes: Sequence[Node]) -> list[Tensor | None]:
    """The gradients of f with respect to leaves, and to the first results of nodes of its graph, which is kept.

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
    """The gradients of several weighted sums of one output, in one pass: weights and gradients have one dimension more.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> batched_backward(x**2, torch.eye(2), [x])
    [tensor([[2., 0.],
            [0., 4.]])]
    """
    return [
        # torch gives nothing for a variable that is not used, and one without the leading dimension for a constant
        torch.zeros((len(weights), *leaf.shape), dtype=leaf.dtype, device=leaf.device) if part is None else part
        for part, leaf in zip(_batched(output, weights, tuple(leaves)), leaves, strict=True)
    ]


def batched_sensitivities(
    output: Tensor, weights: Tensor, leaves: Sequence[Tensor], nodes: Sequence[Node]
) -> list[Tensor | None]:
    """The gradients of several weighted sums of one output with respect to leaves, and to the first results of nodes.

    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> y = abs(x)
    >>> batched_sensitivities(torch.stack([y.sum(), 3 * y[0]]), torch.eye(2), [x], [y.grad_fn])[1]
    tensor([[1., 1.],
            [3., 0.]])
    """
    return list(_batched(output, weights, (*leaves, *(GradientEdge(node, 0) for node in nodes))))


def _batched(output: Tensor, weights: Tensor, inputs: Any) -> Sequence[Tensor | None]:
    found: Sequence[Tensor | None]
    if _run is None or type(output) is not Tensor:
        found = torch.autograd.grad([output], inputs, [weights], retain_graph=True, allow_unused=True, is_grads_batched=True)
        return found
    if len(weights) >= MIN_SUMS_FOR_VMAP:
        level = _functorch._vmap_increment_nesting(len(weights), "error")
        try:
            batch = _functorch._add_batch_dim(weights, 0, level)
            parts = _run((output,), (batch,), True, False, inputs, True, accumulate_grad=False)
            found = [None if part is None else _functorch._remove_batch_dim(part, level, len(weights), 0) for part in parts]
        finally:
            _functorch._vmap_decrement_nesting()
    else:
        level = _enter()  # what `is_grads_batched` does, without taking structures apart and putting them together
        try:
            parts = _run((output,), (_batch(weights, 0, level),), True, False, inputs, True, accumulate_grad=False)
            found = [None if part is None else _unbatch(part, level, len(weights), 0) for part in parts]
        finally:
            _leave()
    return found
