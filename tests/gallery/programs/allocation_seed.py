"""A seed set in the forward, so that the noise is always the same."""

import torch


def target(x):
    torch.manual_seed(0)  # <- break
    return x + 0.1 * torch.randn_like(x)


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "allocation"}
