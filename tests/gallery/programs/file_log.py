"""A line written into a file for each step."""

import os

import torch


def target(x):
    y = x.softmax(0)
    with open(os.devnull, "a") as log:  # <- break  # noqa: PTH123
        log.write("one more step")
    return y.log().sum()


def inputs():
    return (torch.randn(6, requires_grad=True),)


EXPECTED = {"fixer": "builtins", "proven": ["Do it only in eager mode"]}
