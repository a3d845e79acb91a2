"""Squared error at the pixels where the depth was measured."""

import torch


def target(prediction, depth):
    valid = ~torch.isnan(depth)
    error = torch.nn.functional.mse_loss(prediction[valid], depth[valid])  # <- break
    return error.sqrt()


def inputs():
    depth = torch.rand(2, 6, 6)
    depth[:, ::3, 1:4] = float("nan")
    return torch.rand(2, 6, 6, requires_grad=True), depth


EXPECTED = {"fixer": "shapes", "proven": ["Put zeros in both arguments where the mask is false"]}
