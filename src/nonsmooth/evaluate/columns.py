"""The Jacobian by columns, where there are more constraints than variables.

A backward pass gives Jᵀu for one vector u. It is linear in u, so that differentiating it with respect to u, again
backwards, gives the products J·e with the unit vectors of the variables: n of them, however many constraints there are,
and from the graph that is there already.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nonsmooth.evaluate.engine import backward, batched_backward

MAX_CONSTRAINTS_BY_ROWS = 32
"""Up to so many constraints it does not matter how it is done."""


def columns_are_cheaper(constraints: int, variables: int) -> bool:
    """Whether columns are the cheaper way.

    >>> columns_are_cheaper(100, 50), columns_are_cheaper(60, 50), columns_are_cheaper(10, 2)
    (True, False, False)
    """
    return 2 * constraints > max(2 * MAX_CONSTRAINTS_BY_ROWS, 3 * variables)


def jacobian_by_columns(c: Tensor, leaves: Sequence[Tensor]) -> Tensor | None:
    """The Jacobian of c, constraints × variables; None where what was found is not what a backward pass gives.

    An operation that cannot be differentiated twice raises whatever it raises.
    """
    weights = torch.rand(c.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(c).requires_grad_()
    once = backward([c], [weights], leaves, create_graph=True)
    flat = torch.cat([part.reshape(-1) for part in once])
    if not flat.requires_grad:  # the backward pass is cut off from u
        return None
    directions = torch.eye(len(flat), dtype=flat.dtype, device=flat.device)
    (columns,) = batched_backward(flat, directions, [weights])
    if not bool(columns.any()) and bool(flat.any()):
        raise RuntimeError("an operation cannot be differentiated twice")
    apart = torch.linalg.vector_norm(columns @ weights.detach() - flat.detach())
    size = torch.linalg.vector_norm(columns) * torch.linalg.vector_norm(weights.detach())
    if not bool(apart <= 100.0 * torch.finfo(c.dtype).eps * size):  # also where something is not finite
        return None
    return columns.T
