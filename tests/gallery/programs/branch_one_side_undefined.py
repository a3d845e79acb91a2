"""The square root of what is zero at times: its gradient is not finite there, so only one side may be computed."""

# ruff: noqa: SIM108

import torch


def target(x):
    variance = (x - x.mean()).square().mean()
    if variance > 0:  # <- break
        scale = variance.sqrt()
    else:
        scale = variance * 2.0
    return x * scale


def inputs():
    return (torch.ones(4, requires_grad=True),)


EXPECTED = {
    "fixer": "branches",
    "proven": ["Choose with torch.cond"],
    "withdrawn": ["Choose with torch.where"],
}
