"""Faults of order and aliasing: values that are read too late, or from memory that is shared."""

from __future__ import annotations

import torch
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=198101,
    inputs=lambda: (torch.arange(-3, 3).reshape(1, 6),),
    stage=BlameStage.INDUCTOR,
    operations=("mul", "view", "copy_", "slice_scatter", "fill"),
    lines=("doubled = x.view(torch.int32) * 2", "x[:, 2:5] = 2"),
    eager="[12884901886, 8589934592, 8589934594, 17179869188, 17179869190, 17179869192]",
    compiled="[12884901886, 8589934592, 17179869192, 17179869192, 17179869192, 17179869192]",
)
def reinterpreted_input_that_is_changed_later(x: Tensor) -> Tensor:
    """A result computed from an input viewed in another dtype is computed after the input has changed."""
    doubled = x.view(torch.int32) * 2
    doubled.sub_(-4)
    x[:, 2:5] = 2
    return doubled.view(torch.int64)


@known_fault(
    issue=198270,
    inputs=lambda: (torch.arange(8.0).reshape(4, 2),),
    stage=BlameStage.INDUCTOR,
    operations=("copy_", "index_put", "flip", "rev", "add"),
    lines=("x.index_put_(", "x.add_(x.flip(0))"),
    eager="[11, 15, 11, 15, 11, 15, 11, 15]",
    compiled="[11, 15, 11, 15, 19, 25, 23, 29]",
)
def update_from_flipped_rows(x: Tensor) -> Tensor:
    """When an update follows an index_put_, rows are read after they have been written."""
    x.index_put_((torch.arange(4),), x * 2.0)
    x.add_(x.flip(0))
    return x - 1


@known_fault(
    issue=183986,
    inputs=lambda: (torch.ones(3, 2), tensor([0, 1, 0])),
    stage=BlameStage.INDUCTOR,
    operations=("index_add", "index_put", "expand"),
    lines=("total = rows.index_add", "rows = torch.zeros"),
    eager="[4, 4, 2, 2, 0, 0, 0, 0]",
    compiled="[6, 6, 6, 6, 6, 6, 6, 6]",
)
def sum_into_expanded_rows(source: Tensor, index: Tensor) -> Tensor:
    """Rows of an expanded tensor share their memory when index_add adds to them."""
    rows = torch.zeros(1, 2).expand(4, -1)
    total = rows.index_add(0, index, source)
    return total * 2
