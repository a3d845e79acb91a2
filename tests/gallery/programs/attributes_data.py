"""Values clamped behind autograd's back."""

import torch


def target(x):
    y = x * 1.5
    y.data = torch.clamp(y.data, -1.0, 1.0)  # <- break
    return y.square().sum()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "attributes", "proven": ["Copy the values into the tensor"]}
