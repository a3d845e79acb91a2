"""A learning signal whose sign decides how it is scaled."""

# ruff: noqa: SIM108

import torch


def target(x, advantage):
    ratio = torch.exp(x - x.detach())
    if advantage.mean() > 0:  # <- break
        weight = advantage * 2.0
    else:
        weight = advantage * 0.5  # losses count less
    return (ratio * weight).sum()


def inputs():
    return (torch.randn(6, requires_grad=True), torch.linspace(-1.0, 2.0, 6))


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
