"""Faults of the decompositions into simpler operations, many of them in a backward."""

from __future__ import annotations

from math import nan

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=None,
    inputs=lambda: (tensor([nan, 2.0, 0.0], requires_grad=True), tensor([0.0, 0.0, 0.5])),
    stage=BlameStage.DECOMPOSITIONS,
    operations=("smooth_l1_loss_backward",),
    lines=("loss = F.smooth_l1_loss",),
    eager="[nan, 1, -0.5]",
    compiled="[0, 1, -0.5]",
    shown="gradient of x",
    gradients=True,
)
def gradient_of_a_robust_loss_at_nan(x: Tensor, target: Tensor) -> Tensor:
    """The gradient of the smooth L1 loss at NaN is 0: a diverged model seems to have converged."""
    loss = F.smooth_l1_loss(x, target, reduction="sum")
    return loss * 1.0


@known_fault(
    issue=None,
    inputs=lambda: (tensor([[1.0, 2.0, 1e30], [1.0, 2.0, 3.0]]),),
    stage=BlameStage.DECOMPOSITIONS,
    operations=("std", "var"),
    lines=("spread = centered.std",),
    eager="[5.7735e+29, 1]",
    compiled="[inf, 1]",
)
def standard_deviation_of_large_numbers(x: Tensor) -> Tensor:
    """The standard deviation overflows where eager's does not, because it is computed from a float32 variance."""
    centered = x - 1
    spread = centered.std(dim=1)
    return spread.abs()
