"""Kernels of Inductor that lose accuracy or overflow where eager's do not."""

from __future__ import annotations

import torch
from torch import Tensor, tensor

from compile_inspect.records import BlameStage
from known_faults.entry import known_fault


@known_fault(
    issue=183763,
    inputs=lambda: (tensor([88.85, 89.2, -89.0, 1.0]),),
    stage=BlameStage.INDUCTOR,
    operations=("sinh",),
    lines=("grown = torch.sinh",),
    eager="[9.6606e+37, 1.3709e+38, -1.1224e+38, 0.587601]",
    compiled="[inf, inf, -inf, 0.587601]",
)
def hyperbolic_sine_near_overflow(x: Tensor) -> Tensor:
    """sinh overflows where eager's result is finite."""
    grown = torch.sinh(x)
    return grown / 2


@known_fault(
    issue=183765,
    inputs=lambda: (tensor([88.85, 89.2, -89.0, 1.0]),),
    stage=BlameStage.INDUCTOR,
    operations=("cosh",),
    lines=("grown = torch.cosh",),
    eager="[1.93212e+38, 2.7418e+38, 2.24481e+38, 1.54308]",
    compiled="[inf, inf, inf, 1.54308]",
)
def hyperbolic_cosine_near_overflow(x: Tensor) -> Tensor:
    """cosh overflows where eager's result is finite."""
    mirrored = x.neg()
    grown = torch.cosh(mirrored)
    return grown


@known_fault(
    issue=198134,
    inputs=lambda: (torch.full((16,), 1e200, dtype=torch.float64),),
    stage=BlameStage.INDUCTOR,
    operations=("acosh",),
    lines=("area = torch.acosh",),
    eager="[922.42, 922.42, 922.42, 922.42, 922.42, 922.42, 922.42, 922.42, …]",
    compiled="[inf, inf, inf, inf, inf, inf, inf, inf, …]",
)
def inverse_hyperbolic_cosine_of_a_large_number(x: Tensor) -> Tensor:
    """acosh of 1e200 is infinite: vectorized code squares its argument."""
    area = torch.acosh(x)
    return area * 2


@known_fault(
    issue=None,
    inputs=lambda: (torch.full((16,), 1e-10),),
    stage=BlameStage.INDUCTOR,
    operations=("expm1",),
    lines=("growth = torch.expm1",),
    eager="[1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10, …]",
    compiled="[0, 0, 0, 0, 0, 0, 0, 0, …]",
)
def expm1_of_small_numbers(x: Tensor) -> Tensor:
    """expm1 of small numbers is 0 in vectorized code, although expm1 exists to avoid that."""
    rate = x / 2
    growth = torch.expm1(rate)
    return growth * 2


@known_fault(
    issue=198183,
    inputs=lambda: (torch.full((16,), 1e-9),),
    stage=BlameStage.INDUCTOR,
    operations=("atanh",),
    lines=("rapidity = torch.atanh",),
    eager="[1, 1, 1, 1, 1, 1, 1, 1, …]",
    compiled="[0, 0, 0, 0, 0, 0, 0, 0, …]",
)
def atanh_of_small_numbers(x: Tensor) -> Tensor:
    """atanh of small numbers is 0 in vectorized code."""
    rapidity = torch.atanh(x)
    return rapidity / x


@known_fault(
    issue=198183,
    inputs=lambda: (torch.full((16,), 1e-5),),
    stage=BlameStage.INDUCTOR,
    operations=("erf",),
    lines=("share = torch.erf",),
    eager="[0.56419, 0.56419, 0.56419, 0.56419, 0.56419, 0.56419, 0.56419, 0.56419, …]",
    compiled="[0.572204, 0.572204, 0.572204, 0.572204, 0.572204, 0.572204, 0.572204, 0.572204, …]",
)
def erf_of_small_numbers(x: Tensor) -> Tensor:
    """erf of small numbers has two correct digits in vectorized code."""
    halved = x / 2
    share = torch.erf(halved)
    return share * 100000
