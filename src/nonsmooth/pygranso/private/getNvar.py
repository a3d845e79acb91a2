"""Counting variables, as PyGRANSO's examples do to shape x0."""  # noqa: N999

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor


def getNvarTorch(parameters: Iterable[Tensor]) -> int:  # noqa: N802 (PyGRANSO's name)
    """The total number of elements of all tensors.

    >>> import torch
    >>> getNvarTorch(torch.nn.Linear(3, 2).parameters())
    8
    """
    return sum(parameter.numel() for parameter in parameters)


def getNvar(var_dim_map: Mapping[str, Sequence[int]]) -> int:  # noqa: N802 (PyGRANSO's name)
    """The total number of elements of variables with these shapes.

    >>> getNvar({"U": [5, 2], "v": [3]})
    13
    """
    return sum(math.prod(shape) for shape in var_dim_map.values())


__all__ = ["getNvar", "getNvarTorch"]
