"""Losses of the tokens that count, selected first and averaged on the next line."""

import torch
from torch.nn import functional


def target(logits, labels):
    losses = functional.cross_entropy(logits, labels, reduction="none")
    mask = labels != 0
    active = losses[mask]  # <- break
    return active.mean() + 0.1 * active.sum() / active.numel()


def inputs():
    return torch.randn(6, 5, requires_grad=True), torch.tensor([0, 3, 1, 0, 4, 2])


EXPECTED = {"fixer": "shapes", "proven": ["Keep all values, with zeros where the mask is false"]}
