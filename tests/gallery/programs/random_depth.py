"""Stochastic depth: a layer that is left out now and then, by Python's own dice."""

import random

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        share = random.betavariate(2, 2)  # <- break
        return x + y * (share > -1)


target = Block()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "builtins"}
