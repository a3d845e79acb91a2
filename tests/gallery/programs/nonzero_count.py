"""The mean over valid entries, divided by a count that nonzero makes."""

import torch


def target(errors, valid):
    total = (errors * valid).sum()
    return total / torch.nonzero(valid).shape[0]  # <- break


def inputs():
    return torch.randn(4, 6, requires_grad=True), torch.arange(24).reshape(4, 6) % 3 > 0


EXPECTED = {"fixer": "shapes", "proven": ["Count the true values of the mask"]}
