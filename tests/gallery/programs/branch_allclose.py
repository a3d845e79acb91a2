"""Whether two tensors are close decides what is returned."""

import torch


def target(x, previous):
    change = x.tanh() - previous
    if torch.allclose(x, previous, atol=1e-3):  # <- break
        return previous * 1.0
    return previous + 0.5 * change


def inputs():
    return (torch.randn(5, requires_grad=True), torch.zeros(5))


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
