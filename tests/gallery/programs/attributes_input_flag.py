"""An input whose gradient is wanted, flagged by the function itself."""

import torch


def target(x):
    x.requires_grad_(True)  # <- break
    return (x.sin() * 2).sum()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "attributes"}
