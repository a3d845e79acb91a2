"""Text of a tensor that is kept for a message."""

import torch

LAST = []


def target(x):
    y = x.cumsum(0)
    text = repr(y)  # <- break
    LAST[:] = []
    LAST.append(text)
    return y * 2


def inputs():
    return (torch.randn(4, requires_grad=True),)


EXPECTED = {"fixer": "builtins", "proven": ["Do it only in eager mode"]}
