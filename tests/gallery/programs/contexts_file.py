"""Shapes written to a file, to look at them afterwards."""

import os

import torch


def target(x):
    hidden = x.unflatten(1, (2, 2)).mean(1)
    with open(os.devnull, "a") as log:  # <- break  # noqa: PTH123
        log.write(f"{tuple(hidden.shape)}\n")
    return hidden.relu().sum()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "contexts", "proven": ["Write the file only in eager mode"]}
