"""A step size in three ranges."""

import torch


def target(x, error):
    size = error.abs().mean()
    if size > 1.0:  # <- break
        rate = 0.5 * size
    elif size > 0.1:
        rate = size.square()
    else:
        rate = size * 0.01
    return x - rate * error


def inputs():
    return (torch.randn(6, requires_grad=True), torch.linspace(-3.0, 2.0, 6))


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where"]}
