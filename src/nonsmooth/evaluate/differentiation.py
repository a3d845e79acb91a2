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
    """Counts of evaluations, gradients and Jacobians."""

    values: int = 0
    gradients: int = 0
    jacobians: int = 0
    one_by_one: bool = False
    """Whether the Jacobian is computed row by row, because an operation of the user's function cannot be batched."""
    once_only: bool = False
    """Whether it is never computed by columns, because an operation of the user's function cannot be differentiated twice."""
    silent: bool = field(default=False, repr=False)
    """Whether batching emitted no warnings."""


class Autograd:
    """Gradients from the autograd graph of an evaluation."""

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
        if c is not None and c.requires_grad and constraints.any():  # otherwise its backward pass can be skipped
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
                    warnings.simplefilter("ignore")  # torch warns of operations that it batches by a loop
                    jacobian = jacobian_by_columns(c.reshape(-1), self._leaves)
            except Exception:  # possibly not differentiable twice; any other error recurs with rows
                self._costs.once_only, jacobian = True, None
            if jacobian is not None:
                return np.ascontiguousarray(jacobian.detach().to("cpu", torch.float64).numpy())
        directions = torch.eye(count, dtype=c.dtype, device=c.device).view(count, *c.shape)
        if not self._costs.one_by_one:
            try:
                return self._variables.rows(self._batched(c, directions), count)
            except Exception:  # an operation without a batching rule; any other error recurs in the loop
                self._costs.one_by_one = True
        rows = np.empty((count, self._variables.size))
        # New directions: a backward function that modifies its arguments may have changed those of the failed batch.
        for index, direction in enumerate(torch.eye(count, dtype=c.dtype, device=c.device).view(count, *c.shape)):
            rows[index] = self._flat(self._backward([c], [direction]))
        return rows

    def _batched(self, c: Tensor, directions: Tensor) -> Sequence[Tensor]:
        if self._costs.silent:
            return batched_backward(c, directions, self._leaves)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # hides torch's warnings of operations that it batches by a loop
            gradients = batched_backward(c, directions, self._leaves)
        self._costs.silent = not caught
        return gradients

    def _backward(self, outputs: list[Tensor], weights: list[Tensor]) -> Sequence[Tensor]:
        try:
            return backward(outputs, weights, self._leaves)
        except Exception as error:
            raise FunctionFailed(error) from error


class ExplicitDerivatives:
    """Gradients that the user's function has returned."""

    def __init__(self, gradient: Vector, jacobian: Matrix, costs: Costs) -> None:
        self._gradient, self._jacobian, self._costs = gradient, jacobian, costs

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c."""
        self._costs.gradients += 1
        return objective * self._gradient + constraints @ self._jacobian

    def full(self) -> tuple[Vector, Matrix]:
        """The gradients as returned by the function."""
        self._costs.jacobians += 1
        return self._gradient, self._jacobian
