"""A mean that is safe for empty selections: the sum over the count, both taken from the selection."""

import torch


def target(errors, weights):
    active = weights > 0
    return errors[active].sum() / (len(errors[active]) + 1e-6)  # <- break


def inputs():
    return torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)


EXPECTED = {
    "fixer": "shapes",
    "proven": ["Put neutral values where the mask is false"],
    "withdrawn": ["Count the true values of the mask"],  # the selection that is summed up would stay
}
