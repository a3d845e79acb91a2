"""Faults of Dynamo, which traces the Python code: wrong with every backend."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


class FlatSine(torch.autograd.Function):
    """A sine whose backward is zero by design."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return torch.zeros_like(gradients[0])


@known_fault(
    issue=193279,
    inputs=lambda: (tensor([0.0, 0.5, 1.0, 1.5]),),
    stage=BlameStage.DYNAMO,
    operations=("zeros_like", "cos"),
    lines=("slope = torch.func.grad", "return torch.zeros_like(gradients[0])"),
    eager="[0, 0, 0, 0]",
    compiled="[2, 1.75517, 1.0806, 0.141474]",
)
def custom_backward_under_func_grad(x: Tensor) -> Tensor:
    """torch.func.grad drops the custom backward of an autograd.Function."""
    scale = x.numel() / 2
    slope = torch.func.grad(lambda value: FlatSine.apply(value).sum())(x)  # type: ignore[no-untyped-call]
    return slope * scale


@known_fault(
    issue=197586,
    inputs=lambda: (tensor([1 + 1j, 2 - 1j]),),
    stage=BlameStage.DYNAMO,
    operations=("copy_", "setitem"),
    lines=("phasor[0] = complex",),
    eager="[3.14159, -0.463648]",
    compiled="[0, -0.463648]",
)
def complex_constant_with_a_negative_zero(x: Tensor) -> Tensor:
    """A complex constant loses the sign of a zero real part."""
    phasor = x.clone()
    phasor[0] = complex(-0.0, 0.0)
    return torch.angle(phasor)
