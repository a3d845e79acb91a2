"""A check that raises, as many training steps have it."""

import torch


def target(x, weight):
    loss = (x @ weight).square().mean()
    if torch.isnan(loss):  # <- break
        raise ValueError("the loss is not a number")
    return loss * 0.5


def inputs():
    return (torch.randn(3, 4), torch.randn(4, 2, requires_grad=True))


EXPECTED = {
    "fixer": "branches",
    "proven": ["Let the graph check it", "Check only in eager mode"],
}
