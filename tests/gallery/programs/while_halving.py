"""Backtracking: a step is halved until the function falls."""

import torch


def target(x, direction):
    step = torch.ones(())
    start = x.square().sum()
    while (x + step * direction).square().sum() > start:  # <- break
        step = step * 0.5  # half as far
    return x + step * direction


def inputs():
    return (torch.linspace(0.5, 1.5, 5), torch.linspace(-9.0, -4.0, 5))


EXPECTED = {"fixer": "loops", "proven": ["Loop with while_loop"]}
