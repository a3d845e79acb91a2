"""Torch's decompositions of operations into simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def decomposition_of(operation: Any) -> Callable[..., Any] | None:
    """The Python function that computes an operation from core operations; None for a core operation."""
    decomposition: Callable[..., Any] | None = _table().get(operation)
    return decomposition


@cache
def _table() -> dict[Any, Any]:
    import torch
    from torch._decomp import core_aten_decompositions, get_decompositions

    aten = torch.ops.aten
    # These count as core operations, but kernels compute them in several steps.
    steps = [aten.gelu, aten.gelu_backward, aten._softmax, aten._log_softmax, aten.native_layer_norm]
    return {**core_aten_decompositions(), **get_decompositions(steps)}
