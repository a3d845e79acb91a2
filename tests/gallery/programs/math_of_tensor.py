"""A scale computed with the math module from a statistic of the weights."""

import math

import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        scale = math.sqrt(self.weight.var())  # <- break
        return x @ self.weight / scale


target = Scaled()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "builtins", "proven": ["Write math.sqrt as torch.sqrt"]}
