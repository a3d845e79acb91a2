"""A break that was asked for while something was being looked for, and stayed."""

import torch


def target(x):
    hidden = x.sin()
    torch._dynamo.graph_break()  # <- break
    return hidden.cos().sum()


def inputs():
    return (torch.randn(4, 4, requires_grad=True),)


EXPECTED = {"fixer": "foreign", "proven": ["Remove the explicit graph break"]}
