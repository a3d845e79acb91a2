"""Modes of torch that Dynamo does not guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def forward_mode() -> Any:
    """The module whose `_current_level` is negative unless forward-mode differentiation is on."""
    from torch.autograd import forward_ad

    return forward_ad


def dispatch_depth() -> Callable[[], int]:
    """The function that returns the number of active dispatch modes."""
    import torch

    depth: Callable[[], int] = torch._C._len_torch_dispatch_stack
    return depth


def driver_version() -> int:
    """The version of the CUDA driver."""
    import torch

    return int(torch._C._cuda_getDriverVersion())  # type: ignore[attr-defined]
