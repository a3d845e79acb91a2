"""A different path where the tensor is part of a backward pass."""

import torch


def target(x):
    y = x.sin()
    if y.grad_fn is not None:  # <- break
        y = torch.where(y.abs() < 1e-6, y.detach(), y)
    return y.sum()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "attributes", "proven": ["Test whether the tensor is a leaf"]}
