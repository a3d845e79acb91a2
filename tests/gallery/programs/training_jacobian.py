"""The Jacobian of a flow, for the volume it changes."""

import torch


def flow(x):
    return torch.tanh(x) + 0.5 * x.roll(1)


def target(x):
    matrix = torch.autograd.functional.jacobian(flow, x, create_graph=True)  # <- break
    return torch.linalg.slogdet(matrix)[1]


def inputs():
    return (torch.randn(4, requires_grad=True),)


EXPECTED = {"fixer": "training", "proven": ["Use torch.func.jacrev"]}
