"""Faults of Inductor's passes over graphs, which rewrite them before kernels are written."""

from __future__ import annotations

from math import inf, nan

import torch
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=189799,
    inputs=lambda: (tensor([-0.5, -0.1, 1.5]),),
    stage=BlameStage.INDUCTOR,
    operations=("add",),
    lines=("total = rounded + zeros",),
    eager="[inf, inf, 0.5]",
    compiled="[-inf, -inf, 0.5]",
)
def sum_with_zeros(x: Tensor) -> Tensor:
    """Adding zeros is optimized away, and with it the change of -0.0 to 0.0."""
    rounded = torch.ceil(x)
    zeros = torch.zeros_like(rounded)
    total = rounded + zeros
    return torch.reciprocal(total)


@known_fault(
    issue=186281,
    inputs=lambda: (tensor([nan, inf, 1.0]),),
    stage=BlameStage.INDUCTOR,
    operations=("mul",),
    lines=("nothing = x * 0",),
    eager="[nan, nan, 1]",
    compiled="[1, 1, 1]",
)
def product_with_zero(x: Tensor) -> Tensor:
    """A product with 0 is assumed to be 0, even for NaN and infinity."""
    nothing = x * 0
    return nothing + 1


@known_fault(
    issue=198131,
    inputs=lambda: (torch.zeros(2, 3), torch.arange(6.0).view(2, 3)),
    stage=BlameStage.INDUCTOR,
    operations=("slice", "copy", "add", "getitem", "setitem"),
    lines=("target[0:, :] = source[0:, :]", "source.add_(1)"),
    eager="[0, 1, 2, 3, 4, 5]",
    compiled="[1, 2, 3, 4, 5, 6]",
    shown="target after the call",
)
def copy_before_an_update(target: Tensor, source: Tensor) -> Tensor:
    """A copy of an input is made after the input has changed."""
    target[0:, :] = source[0:, :]
    source.add_(1)
    return source * 2


@torch.library.custom_op("known_faults::reverse_into", mutates_args=("target",))
def reverse_into(source: Tensor, target: Tensor) -> None:
    for place in range(len(source)):
        target[len(source) - 1 - place] = source[place]


@known_fault(
    issue=198031,
    inputs=lambda: (torch.arange(6.0),),
    stage=BlameStage.INDUCTOR,
    operations=("clone", "reverse_into", "auto_functionalized"),
    lines=("original = x.clone()", "reverse_into(original, x)"),
    eager="[10, 8, 6, 4, 2, 0]",
    compiled="[0, 2, 4, 4, 2, 0]",
)
def clone_for_a_custom_operator(x: Tensor) -> Tensor:
    """A clone is optimized away, so a custom operator reads the memory that it is writing."""
    original = x.clone()
    reverse_into(original, x)
    return x * 2


@known_fault(
    issue=None,
    inputs=lambda: (torch.arange(9.0).reshape(3, 3), torch.eye(2)),
    stage=BlameStage.INDUCTOR,
    operations=("index_put",),
    lines=("return torch.vmap",),
    eager="[1, 1, 1, 1, 1, 1, 1, 1, …]",
    compiled="[2, 1, 1, 1, 2, 1, 1, 1, …]",
)
def gradient_of_a_trace_under_vmap(x: Tensor, vectors: Tensor) -> Tensor:
    """Rows of a batched gradient of torch.trace overwrite one another."""
    _, pull = torch.func.vjp(lambda value: torch.stack([value.sum(), torch.trace(value)]), x)
    return torch.vmap(lambda vector: pull(vector)[0])(vectors)
