"""Gradients of a vector of constraints by automatic differentiation, for functions that compute their own gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nonsmooth.errors import ProblemError


def getCiGradVec(  # noqa: N802 (PyGRANSO's name)
    nvar: int,
    nconstr_ci_total: int,
    var_dim_map: Mapping[str, Sequence[int]],
    X: Any,  # noqa: N803 (PyGRANSO's name)
    ci_vec_torch: Tensor,
    torch_device: Any = None,
    double_precision: bool | torch.dtype = torch.double,
) -> Tensor:
    """The gradients of constraints with respect to all variables, one column each: nvar × nconstr_ci_total.

    The variables are the attributes of X named by `var_dim_map`, and must have required gradients when the constraints were
    computed. The graph is retained.

    >>> from nonsmooth.pygranso import pygransoStruct
    >>> q = torch.tensor([[1.0], [2.0]], dtype=torch.double, requires_grad=True)
    >>> getCiGradVec(2, 1, {"q": [2, 1]}, pygransoStruct(q=q), q.T @ q - 1, torch.device("cpu"), torch.double)
    tensor([[2.],
            [4.]], dtype=torch.float64)
    """
    precisions = {True: torch.double, False: torch.float}
    dtype = double_precision if isinstance(double_precision, torch.dtype) else precisions[double_precision]
    variables = [getattr(X, name) for name in var_dim_map]
    sizes = [math.prod(shape) for shape in var_dim_map.values()]
    if sum(sizes) != nvar or any(value.numel() != size for value, size in zip(variables, sizes, strict=True)):
        raise ProblemError(
            f"var_dim_map has {sum(sizes)} numbers, X has {sum(value.numel() for value in variables)}, and nvar is {nvar}"
        )
    constraints = ci_vec_torch.reshape(-1)
    if len(constraints) != nconstr_ci_total:
        raise ProblemError(f"ci_vec_torch has {len(constraints)} constraints, but nconstr_ci_total is {nconstr_ci_total}")
    columns = torch.zeros((nvar, nconstr_ci_total), dtype=dtype, device=torch_device)
    differentiable = [index for index, value in enumerate(variables) if value.requires_grad]
    if not differentiable or not constraints.requires_grad:
        raise ProblemError(
            "no variable requires a gradient; call X.name.requires_grad_(True) before the constraints are computed"
        )
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    for row in range(nconstr_ci_total):
        gradients = torch.autograd.grad(
            constraints[row], [variables[index] for index in differentiable], retain_graph=True, allow_unused=True
        )
        for index, gradient in zip(differentiable, gradients, strict=True):
            if gradient is not None:
                columns[starts[index] : starts[index] + sizes[index], row] = gradient.reshape(-1)
    return columns


__all__ = ["getCiGradVec"]
