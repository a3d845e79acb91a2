"""A Huber-like curve written with a mask and assignments into a tensor."""

import torch


def target(x):
    out = 0.5 * x**2
    large = x.abs() > 1.0
    out[large] = x[large].abs() - 0.5  # <- break
    return out.mean()


def inputs():
    return (torch.randn(5, 7, requires_grad=True),)


EXPECTED = {
    "fixer": "shapes",
    "proven": ["Choose between new and old values with torch.where"],
    "withdrawn": ["Choose between new and old values with torch.where, row by row"],
}
