"""A power written as a call of Python's pow."""

import torch


def target(x):
    return pow(x, 2).sum().sqrt()  # <- break


def inputs():
    return (torch.randn(5, requires_grad=True),)


EXPECTED = {"fixer": "builtins", "proven": ["Write the power as an operator"]}
