"""A state that is kept before it is changed."""

import copy

import torch


def target(state, step):
    before = copy.deepcopy(state)  # <- break
    state = state + step.tanh()
    return state - before


def inputs():
    return torch.randn(4), torch.randn(4, requires_grad=True)


EXPECTED = {"fixer": "builtins", "proven": ["Clone the tensor"]}
