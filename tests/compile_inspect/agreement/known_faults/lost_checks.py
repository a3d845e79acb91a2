"""Inputs that eager rejects and compiled code accepts."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=193757,
    inputs=lambda: (torch.full((4, 4), 0.75),),
    stage=BlameStage.DECOMPOSITIONS,
    operations=("binary_cross_entropy",),
    lines=("loss = F.binary_cross_entropy",),
    eager="RuntimeError: all elements of target should be between 0 and 1",
    compiled="-50",
)
def targets_beyond_one(weights: Tensor) -> Tensor:
    """Binary cross entropy accepts targets above 1, and gives a negative loss."""
    target = weights * 2
    loss = F.binary_cross_entropy(torch.ones_like(target), target)
    return loss.sum()


@known_fault(
    issue=185248,
    inputs=lambda: (torch.full((4,), 1.0),),
    stage=BlameStage.DECOMPOSITIONS,
    operations=("normal",),
    lines=("noise = torch.normal",),
    eager="RuntimeError: normal expects all elements of std >= 0.0",
    compiled="[-3.08199, 0.586858, 4.35758, -1.13686]",
)
def negative_standard_deviations(x: Tensor) -> Tensor:
    """torch.normal accepts negative standard deviations."""
    deviation = -x
    noise = torch.normal(torch.zeros(4), deviation)
    return noise * 2


@known_fault(
    issue=185246,
    inputs=lambda: (torch.full((4,), 0.75),),
    stage=BlameStage.DECOMPOSITIONS,
    operations=("bernoulli",),
    lines=("drawn = torch.bernoulli",),
    eager="RuntimeError: Expected p_in >= 0 && p_in <= 1 to be true, but got false",
    compiled="[3, 3, 3, 3]",
)
def probabilities_beyond_one(x: Tensor) -> Tensor:
    """torch.bernoulli accepts probabilities above 1."""
    probability = x + x
    drawn = torch.bernoulli(probability)
    return drawn * 3
