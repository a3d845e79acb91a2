"""Gradients of the user's tensors with respect to the variables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.columns import columns_are_cheaper, jacobian_by_columns
from nonsmooth.evaluate.engine import backward, batched_backward
from nonsmooth.evaluate.trial import FunctionFailed
from nonsmooth.variables import Variables, is_plain

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass
class Costs:
    """How often something was computed."""

    values: int = 0
    gradients: int = 0
    jacobians: int = 0
    one_by_one: bool = False
    """The Jacobian is computed row by row, because an operation of the user's function cannot be batched."""
    once_only: bool = False
    """It is not computed by columns, because an operation of the user's function cannot be differentiated twice."""
    silent: bool = field(default=False, repr=False)
    """Torch had nothing to say when it was computed in one batch."""


class Autograd:
    """Gradients from the graph that evaluating the functions has recorded."""

    def __init__(self, f: Tensor, c: Tensor | None, leaves: Sequence[Tensor], variables: Variables, costs: Costs) -> None:
        self._f, self._c, self._leaves = f, c, list(leaves)
        self._variables, self._costs = variables, costs

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c in one backward pass."""
        outputs: list[Tensor] = []
        weights: list[Tensor] = []
        f, c = self._f, self._c
        if f.requires_grad:
            outputs.append(f)
            weights.append(torch.ones_like(f) if objective == 1.0 else torch.full_like(f, objective))
        if c is not None and c.requires_grad and constraints.any():  # else its gradients are not even looked at
            outputs.append(c)
            weight = torch.from_numpy(constraints) if is_plain(c) else torch.as_tensor(constraints).to(c)
            weights.append(weight if c.dim() == 1 else weight.view(c.shape))
        gradient = self._flat(self._backward(outputs, weights)) if outputs else np.zeros(self._variables.size)
        self._costs.gradients += 1
        return gradient

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and, in one batch where possible, the Jacobian of c."""
        f, c = self._f, self._c
        gradient = self._flat(self._backward([f], [torch.ones_like(f)])) if f.requires_grad else np.zeros(self._variables.size)
        count = 0 if c is None else c.numel()
        if c is None or not count or not c.requires_grad:
            jacobian = np.zeros((count, self._variables.size))
        elif count == 1:
            jacobian = self._flat(self._backward([c], [torch.ones_like(c)]))[None]
        else:
            jacobian = self._jacobian(c, count)
        self._costs.jacobians += 1
        return gradient, jacobian

    def _flat(self, parts: Sequence[Tensor]) -> Vector:
        return self._variables.flat(parts)

    def _jacobian(self, c: Tensor, count: int) -> Matrix:
        if columns_are_cheaper(count, self._variables.size) and not self._costs.once_only:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch tells of operations it batches by a loop
                    found = jacobian_by_columns(c.reshape(-1), self._leaves)
            except Exception:  # it need not be possible; if it is something else, the rows will tell
                self._costs.once_only, found = True, None
            if found is not None:
                return np.ascontiguousarray(found.detach().to("cpu", torch.float64).numpy())
        directions = torch.eye(count, dtype=c.dtype, device=c.device).view(count, *c.shape)
        if not self._costs.one_by_one:
            try:
                return self._variables.rows(self._batched(c, directions), count)
            except Exception:  # an operation without a batching rule; if it is something else, the loop will tell
                self._costs.one_by_one = True
        rows = np.empty((count, self._variables.size))
        # Of their own: a backward that changes what it is given may have changed those of the batch before that failed.
        for index, direction in enumerate(torch.eye(count, dtype=c.dtype, device=c.device).view(count, *c.shape)):
            rows[index] = self._flat(self._backward([c], [direction]))
        return rows

    def _batched(self, c: Tensor, directions: Tensor) -> Sequence[Tensor]:
        if self._costs.silent:
            return batched_backward(c, directions, self._leaves)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")  # torch tells of operations it batches by a loop, and that is kept from the user
            found = batched_backward(c, directions, self._leaves)
        self._costs.silent = not told
        return found

    def _backward(self, outputs: list[Tensor], weights: list[Tensor]) -> Sequence[Tensor]:
        try:
            return backward(outputs, weights, self._leaves)
        except Exception as error:
            raise FunctionFailed(error) from error


class GivenDerivatives:
    """Gradients that the user's function brought along."""

    def __init__(self, gradient: Vector, jacobian: Matrix, costs: Costs) -> None:
        self._gradient, self._jacobian, self._costs = gradient, jacobian, costs

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        self._costs.gradients += 1
        return objective * self._gradient + constraints @ self._jacobian

    def full(self) -> tuple[Vector, Matrix]:
        """The gradients as they were given."""
        self._costs.jacobians += 1
        return self._gradient, self._jacobian
