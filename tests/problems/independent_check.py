"""Whether a point is stationary, by a check that shares no code with the package: numpy, scipy and sampled gradients.

Gradients of the objective and of near-active constraints are sampled at random points around x; the shortest combination of
them with multipliers of the right signs is a nonnegative least-squares problem. It speaks of problems in natural units, where
lengths and slopes are about 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor

Function = Callable[[Tensor], Any]
Matrix = NDArray[np.float64]

_SUM = 1e3
"""Weight of the row that asks the multipliers of the objective to sum to 1."""
_NO_SLOPE = 1e-8
"""Gradients as short as this are none, in natural units: on a plateau far away what is left of f may be all of a gradient."""
_RIDGE = 1e-4
"""Price of a multiplier: gradients that differ by rounding or curvature must not cancel anything with huge ones."""


def violation(function: Function, x: Tensor) -> float:
    """The largest violation of a constraint."""
    _, inequalities, equalities = function(x.double())
    largest = 0.0
    if inequalities is not None:
        largest = max(largest, float(inequalities.max()))
    if equalities is not None:
        largest = max(largest, float(equalities.abs().max()))
    return largest


def residual(function: Function, x: Tensor, *, radius: float = 1e-5, seed: int = 0) -> float:
    """Length of the shortest combination of gradients within the radius, relative to the longest gradient of the objective
    (or to 1e-8, if that is more).

    The next gradient is sampled where the shortest combination of those so far promises most descent.
    """
    generator = torch.Generator().manual_seed(seed)
    size = len(x)
    objective: list[Matrix] = []
    constraints: list[Matrix] = []
    lengths: list[float] = []
    found, step = np.zeros(size), torch.zeros(size, dtype=torch.float64)
    for number in range(3 * size + 30):
        gradient, rows = _gradients(function, x.double() + step, radius)
        objective.append(gradient)
        constraints += rows
        found = _shortest(np.array(objective), np.array(constraints).reshape(-1, size))
        lengths.append(float(np.linalg.norm(found)))
        if not lengths[-1] > _RIDGE or (number > size + 20 and lengths[-1] > 0.99 * lengths[-size // 2 - 10]):
            break
        wander = torch.randn(size, generator=generator, dtype=torch.float64)
        way = -torch.from_numpy(found) / lengths[-1] + 0.3 * wander / wander.norm()
        step = radius * float(torch.rand(1, generator=generator)) * way / way.norm()
    return lengths[-1]


def _shortest(gradients: Matrix, constraints: Matrix) -> Matrix:
    """The shortest combination, relative to the longest gradient of the objective."""
    longest = max(float(np.linalg.norm(gradients, axis=1).max()), _NO_SLOPE)
    columns = np.concatenate([gradients / longest, constraints]).T
    ones = np.concatenate([np.ones(len(gradients)), np.zeros(len(constraints))])
    count = len(ones)
    system = np.concatenate([columns, _SUM * ones[None, :], _RIDGE * np.eye(count)])
    wanted = np.zeros(len(system))
    wanted[columns.shape[0]] = _SUM
    multipliers, _ = nnls(system, wanted, maxiter=30 * count)
    return np.asarray(columns @ multipliers)


def _gradients(function: Function, point: Tensor, radius: float) -> tuple[Matrix, list[Matrix]]:
    """The gradient of the objective, and those of constraints that are active within the radius, equalities with both signs."""
    leaf = point.clone().requires_grad_()
    f, inequalities, equalities = function(leaf)
    (gradient,) = torch.autograd.grad(f, leaf, retain_graph=True)
    rows: list[Matrix] = []
    for values, signs in ((inequalities, (1.0,)), (equalities, (1.0, -1.0))):
        for value in () if values is None else values:
            row = torch.autograd.grad(value, leaf, retain_graph=True)[0].numpy()
            if len(signs) == 2 or float(value.detach()) >= -4.0 * radius * (1.0 + float(np.linalg.norm(row))):
                rows += [sign * row for sign in signs]
    return gradient.numpy(), rows
