"""A function of Python's math module applied to the number of a tensor."""

import math

import torch


def target(x, temperature):
    scale = 1.0 / math.sqrt(temperature.item())  # <- break
    return torch.softmax(x * scale, dim=-1)


def inputs():
    return (torch.randn(4, 8, requires_grad=True), torch.tensor(2.0))


EXPECTED = {"fixer": "scalars", "proven": ["Leave the number in its tensor, without a gradient"]}
