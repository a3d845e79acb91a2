"""Newton's method for a square root, until it has converged."""

import torch


def target(value):
    value = value.abs() + 0.5
    root = value * 1.0
    change = value.max() + 1.0
    while change.item() > 1e-4:  # <- break
        better = 0.5 * (root + value / root)
        change = (better - root).abs().max()
        root = better
    return root.sum()


def inputs():
    return (torch.linspace(0.5, 4.0, 6).requires_grad_(),)


EXPECTED = {"fixer": "loops", "proven": ["Loop with while_loop"]}
