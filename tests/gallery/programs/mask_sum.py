"""A penalty of the values above a limit, picked out with a mask."""

import torch


def target(activations):
    excess = activations.abs() - 1.0
    penalty = excess[excess > 0].sum()  # <- break
    return activations.tanh().sum() + 0.01 * penalty


def inputs():
    return (torch.randn(6, 5, requires_grad=True),)


EXPECTED = {
    "fixer": "shapes",
    "proven": [
        "Put neutral values where the mask is false",
        "Let the graph contain results of unknown length",
    ],
    "withdrawn": ["Put neutral values where the mask is false, row by row"],
}
