"""A conditional expression on a tensor."""

import torch


def target(prediction, goal):
    error = prediction - goal
    loss = error.square().mean() if error.abs().max() < 1.0 else torch.nn.functional.l1_loss(prediction, goal)  # <- break
    return loss * 2.0


def inputs():
    return (torch.linspace(-1.0, 1.0, 6).requires_grad_(), torch.linspace(0.0, 0.5, 6))


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
