"""The Jacobian by columns, for problems with more constraints than variables.

A backward pass computes Jᵀu for one vector u. It is linear in u, so that differentiating it with respect to u, again in
reverse mode, gives the products J·e with the unit vectors of the variables: n of them, however many constraints there are,
and from the existing graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nonsmooth.evaluate.engine import backward, batched_backward

MAX_CONSTRAINTS_BY_ROWS = 32
"""Up to this number of constraints, rows are always fast enough."""


def columns_are_cheaper(constraints: int, variables: int) -> bool:
    """Whether computing the Jacobian by columns is cheaper.

    >>> columns_are_cheaper(100, 50), columns_are_cheaper(60, 50), columns_are_cheaper(10, 2)
    (True, False, False)
    """
    return 2 * constraints > max(2 * MAX_CONSTRAINTS_BY_ROWS, 3 * variables)


def jacobian_by_columns(c: Tensor, leaves: Sequence[Tensor]) -> Tensor | None:
    """The Jacobian of c, constraints × variables; None if it does not agree with a backward pass.

    An operation that cannot be differentiated twice may raise any exception.
    """
    weights = torch.rand(c.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(c).requires_grad_()
    once = backward([c], [weights], leaves, create_graph=True)
    flat = torch.cat([part.reshape(-1) for part in once])
    if not flat.requires_grad:  # the backward pass is detached from u
        return None
    directions = torch.eye(len(flat), dtype=flat.dtype, device=flat.device)
    (columns,) = batched_backward(flat, directions, [weights])
    if not bool(columns.any()) and bool(flat.any()):
        raise RuntimeError("an operation cannot be differentiated twice")
    difference = torch.linalg.vector_norm(columns @ weights.detach() - flat.detach())
    size = torch.linalg.vector_norm(columns) * torch.linalg.vector_norm(weights.detach())
    if not bool(difference <= 100.0 * torch.finfo(c.dtype).eps * size):  # also if anything is not finite
        return None
    return columns.T
