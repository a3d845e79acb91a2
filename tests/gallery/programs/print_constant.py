"""A message of progress that does not depend on any tensor."""

import torch


def target(x):
    y = x.sin()
    print("half way")  # <- break
    return y.cos().sum()


def inputs():
    return (torch.randn(8, requires_grad=True),)


EXPECTED = {
    "fixer": "prints",
    "proven": ["Print or log only in eager mode", "Let torch call print after the graph"],
}
