"""A vector is scaled down where it is too long, by a condition on a number."""

import torch


def target(update, limit: float = 1.0):
    norm = update.norm()
    if norm.item() > limit:  # <- break
        update = update * (limit / (norm + 1e-6))
    return update.cumsum(0)


def inputs():
    return (torch.linspace(-1.0, 2.0, 10).requires_grad_(),)


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
