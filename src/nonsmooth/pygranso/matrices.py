"""Converts the quasi-Newton matrix from and to PyGRANSO's forms: H0, H_final and limited_mem_warm_start."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.errors import OptionError
from nonsmooth.hessian import FullMemory, InverseHessian, LimitedMemory

Matrix = NDArray[np.float64]


def initial_matrix(value: Any, size: int, *, check: bool) -> Matrix:
    """H0 as an array; it must be symmetric and, if `check`, positive definite.

    >>> initial_matrix(torch.eye(2), 2, check=True)
    array([[1., 0.],
           [0., 1.]])
    """
    matrix = _array(value, "H0")
    if matrix.shape != (size, size):
        raise OptionError(f"H0 must have shape ({size}, {size}), not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise OptionError("H0 contains NaN or infinity")
    if not np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8 * float(np.abs(matrix).max(initial=0.0))):
        raise OptionError("H0 must be symmetric")
    matrix = 0.5 * (matrix + matrix.T)
    if check:
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise OptionError("H0 must be positive definite (set checkH0=False to skip this check)") from None
    return matrix


def initial_pairs(value: Any, size: int) -> dict[str, Any]:
    """The field of `Options` for the pairs of an earlier run, given as H_final: a dict of S, Y, rho and gamma."""
    value = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    if value is None or not {"S", "Y", "gamma"} <= value.keys():
        raise OptionError("limited_mem_warm_start must be the H_final of a limited-memory run: a dict of S, Y, rho, gamma")
    steps, changes = _array(value["S"], "limited_mem_warm_start S"), _array(value["Y"], "limited_mem_warm_start Y")
    if steps.ndim != 2 or steps.shape[0] != size or changes.shape != steps.shape:
        raise OptionError(
            f"limited_mem_warm_start must contain S and Y with {size} rows each and equally many columns, "
            f"not {steps.shape} and {changes.shape}"
        )
    gamma = float(_array(value["gamma"], "limited_mem_warm_start gamma").reshape(-1)[0])
    curved = (steps * changes).sum(0) > 0  # pairs may lack this because of rounding or a foreign source, and are dropped
    return {"initial_pairs": (steps[:, curved].T.copy(), changes[:, curved].T.copy(), gamma)}


def as_tensors(hessian: InverseHessian, device: torch.device, dtype: torch.dtype) -> Any:
    """The matrix in the form of H_final: n×n, or a dict of S, Y, rho and gamma.

    >>> as_tensors(FullMemory(1), torch.device("cpu"), torch.float64)
    tensor([[1.]], dtype=torch.float64)
    """

    def tensor(array: Any) -> Tensor:
        return torch.tensor(array, dtype=dtype, device=device)

    if isinstance(hessian, FullMemory):
        return tensor(hessian.matrix)
    assert isinstance(hessian, LimitedMemory)
    products = (hessian.steps * hessian.changes).sum(1)
    return {
        "S": tensor(hessian.steps.T.copy()),
        "Y": tensor(hessian.changes.T.copy()),
        "rho": tensor(1.0 / products[None]),
        "gamma": tensor([[hessian.gamma]]),
    }


def _array(value: Any, name: str) -> Matrix:
    try:
        if isinstance(value, Tensor):
            value = value.detach()
            value = (value.to_dense() if value.layout != torch.strided else value).to("cpu", torch.float64).numpy()
        elif hasattr(value, "toarray"):  # scipy's sparse matrices
            value = value.toarray()
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name} must be a matrix of numbers, not {type(value).__name__}") from error
