"""The state before the steps kept as a deep copy."""

import copy

import torch


def target(x, w):
    before = copy.deepcopy(x)  # <- break
    for _ in range(3):
        x = torch.tanh(x @ w)
    return (x - before).square().mean()


def inputs():
    return (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))


EXPECTED = {"since": "2.13", "fixer": "attributes", "proven": ["Copy only the values"]}
