"""Faults of AOTAutograd, which traces what Dynamo captured into a graph without mutation."""

from __future__ import annotations

from math import inf

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=175154,
    inputs=lambda: (tensor([[[[1.0, 2.0]]]], dtype=torch.float64),),
    stage=BlameStage.AOT_AUTOGRAD,
    operations=("interpolate",),
    lines=("larger = F.interpolate",),
    eager="[3, 5]",
    compiled="[3, 3]",
)
def interpolation_that_keeps_the_size(x: Tensor) -> Tensor:
    """Nearest interpolation of two pixels by 1.3 returns two pixels, but reads the first one twice."""
    doubled = x * 2
    larger = F.interpolate(doubled, scale_factor=1.3, mode="nearest")
    return larger + 1


@known_fault(
    issue=198201,
    inputs=lambda: (torch.arange(12.0).reshape(1, 1, 3, 4),),
    stage=BlameStage.AOT_AUTOGRAD,
    operations=("interpolate",),
    lines=("stretched = F.interpolate",),
    eager="[0, 4, 8]",
    compiled="[0, 0, 4]",
)
def interpolation_of_one_dimension(x: Tensor) -> Tensor:
    """A dimension that keeps its size is still resampled by its scale."""
    shifted = x - x.amin()
    stretched = F.interpolate(shifted, scale_factor=(1.3, 1.5), mode="nearest")
    return stretched[0, 0, :, 0]


@known_fault(
    issue=174371,
    inputs=lambda: (torch.arange(40.0).reshape(2, 2, 10),),
    stage=BlameStage.AOT_AUTOGRAD,
    operations=("add_", "as_strided"),
    lines=("window.add_(1.0)", "window = copy.as_strided"),
    eager="[1, 3, 3, 3]",
    compiled="[1, 2, 2, 3]",
)
def update_of_overlapping_memory(x: Tensor) -> Tensor:
    """An in-place update of a view that overlaps itself adds once where eager adds twice."""
    copy = x.clone()
    window = copy.as_strided((2, 2), (1, 1), 0)
    window.add_(1.0)
    return window


@known_fault(
    issue=195422,
    inputs=lambda: (torch.ones(2, 2),),
    stage=BlameStage.AOT_AUTOGRAD,
    operations=("dropout", "add"),
    lines=("same = F.dropout", "same += same"),
    eager="[2, 2, 2, 2]",
    compiled="[1, 1, 1, 1]",
    shown="x after the call",
)
def update_through_a_dropout(x: Tensor) -> Tensor:
    """Dropout in evaluation mode returns its input itself, and an update of that result is lost."""
    same = F.dropout(x, 0.5, False)
    same += same
    return same.sum()


@known_fault(
    issue=None,
    inputs=lambda: (tensor([[[[inf, 1.0], [2.0, 3.0]]]]),),
    stage=BlameStage.AOT_AUTOGRAD,
    operations=("interpolate",),
    lines=("resized = F.interpolate",),
    eager="[inf, inf, inf, 2]",
    compiled="[nan, nan, nan, 2]",
)
def bilinear_interpolation_beside_infinity(x: Tensor) -> Tensor:
    """Bilinear interpolation turns infinity into NaN."""
    raised = x + 1
    resized = F.interpolate(raised, scale_factor=2, mode="bilinear")
    return resized[0, 0, 0]
