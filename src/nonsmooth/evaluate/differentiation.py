"""Gradients of the user's tensors with respect to the variables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.columns import by_columns, worthwhile
from nonsmooth.evaluate.trial import FunctionFailed
from nonsmooth.variables import Variables

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


class Autograd:
    """Gradients from the graph that evaluating the functions has recorded."""

    def __init__(self, f: Tensor, c: Tensor | None, leaves: Sequence[Tensor], variables: Variables, costs: Costs) -> None:
        self._f, self._c, self._leaves = f, c, list(leaves)
        self._variables, self._costs = variables, costs

    def combination(self, objective: float, constraints: Vector) -> Vector:
        """Gradient of objective·f + constraints·c in one backward pass."""
        outputs: list[Tensor] = []
        weights: list[Tensor | None] = []
        if self._f.requires_grad:
            outputs.append(self._f)
            weights.append(None if objective == 1.0 else torch.full_like(self._f, objective))  # None stands for 1
        if self._c is not None and self._c.requires_grad and constraints.any():
            outputs.append(self._c)
            weights.append(torch.as_tensor(constraints).to(self._c))
        gradient = self._variables.flat(self._backward(outputs, weights)) if outputs else np.zeros(self._variables.size)
        self._costs.gradients += 1
        return gradient

    def full(self) -> tuple[Vector, Matrix]:
        """Gradient of f and, in one batch where possible, the Jacobian of c."""
        gradient = (
            self._variables.flat(self._backward([self._f], [None])) if self._f.requires_grad else np.zeros(self._variables.size)
        )
        count = 0 if self._c is None else self._c.numel()
        if self._c is None or not count or not self._c.requires_grad:
            jacobian = np.zeros((count, self._variables.size))
        else:
            jacobian = self._jacobian(self._c, count)
        self._costs.jacobians += 1
        return gradient, jacobian

    def _jacobian(self, c: Tensor, count: int) -> Matrix:
        if worthwhile(count, self._variables.size) and not self._costs.once_only:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch tells of operations it batches by a loop
                    found = by_columns(c, self._leaves)
            except Exception:  # it need not be possible; if it is something else, the rows will tell
                self._costs.once_only, found = True, None
            if found is not None:
                return np.ascontiguousarray(found.detach().to("cpu", torch.float64).numpy())
        if count > 1 and not self._costs.one_by_one:
            try:
                directions = torch.eye(count, dtype=c.dtype, device=c.device)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch tells of operations it batches by a loop
                    return self._variables.rows(self._backward([c], [directions], batched=True), count)
            except FunctionFailed:  # an operation without a batching rule; if it is something else, the loop will tell
                self._costs.one_by_one = True
        rows = []
        for index in range(count):
            direction = torch.zeros_like(c)
            direction[index] = 1
            rows.append(self._variables.flat(self._backward([c], [direction])))
        return np.stack(rows) if count > 1 else rows[0][None]

    def _backward(self, outputs: list[Tensor], weights: list[Tensor | None], *, batched: bool = False) -> Sequence[Tensor]:
        try:
            return torch.autograd.grad(
                outputs,
                self._leaves,
                weights,
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
                is_grads_batched=batched,
            )
        except Exception as error:
            raise FunctionFailed(error) from error


class Given:
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
