"""The nearest of some centers, looked up by a Python number."""

import torch


def target(x, centers):
    nearest = (centers - x).square().sum(dim=1).argmin()
    center = centers[nearest.item()]  # <- break
    return (x - center).square().sum()


def inputs():
    return (torch.tensor([0.5, -1.0, 2.0]), torch.linspace(-2.0, 2.0, 12).view(4, 3).requires_grad_())


EXPECTED = {"fixer": "scalars", "proven": ["Leave the number in its tensor, without a gradient"]}
