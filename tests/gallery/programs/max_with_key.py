"""The largest of several maps of features."""

import torch


def target(coarse, fine):
    largest = max([coarse, fine], key=lambda features: features.numel())  # <- break
    return largest.mean() + coarse.sum()


def inputs():
    return torch.randn(2, 2, requires_grad=True), torch.randn(4, 4, requires_grad=True)


EXPECTED = {"fixer": "builtins", "proven": ["Sort, and take the first instead of max"]}
