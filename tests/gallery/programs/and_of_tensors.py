"""Two conditions on tensors, joined by Python, for a factor."""

import torch


def target(x):
    hidden = x.exp()
    stable = hidden.max() < 50.0 and hidden.min() > 1e-3  # <- break
    return hidden * stable


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "branches", "proven": ["Combine the conditions as tensors"]}
