"""Scaling to the largest entry, which the gradient takes for a constant because it was made a float."""

import torch


def target(weight):
    scale = float(weight.abs().max()) / 127.0  # <- break
    rounded = torch.round(weight / scale)
    return weight + (rounded * scale - weight).detach()


def inputs():
    return (torch.linspace(-2.0, 3.0, 12).view(3, 4).requires_grad_(),)


EXPECTED = {
    "fixer": "scalars",
    "proven": ["Leave the number in its tensor, without a gradient"],
}
