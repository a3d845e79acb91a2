"""A switch that is a file: whether it is there is asked in each call."""

import os

import torch


def target(x):
    y = x.tanh()
    if os.path.exists("/nowhere/debug"):  # <- break  # noqa: PTH110
        y = y * 0
    return y.sum()


def inputs():
    return (torch.randn(5, requires_grad=True),)


EXPECTED = {"fixer": "builtins"}
