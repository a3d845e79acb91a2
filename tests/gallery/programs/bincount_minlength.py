"""How often each class was predicted, to weigh a loss."""

import torch


def target(logits):
    counts = torch.bincount(logits.argmax(1), minlength=4)  # <- break
    weights = 1.0 / (counts + 1)
    return (logits * weights).sum()


def inputs():
    return (torch.randn(12, 4, requires_grad=True),)


EXPECTED = {"fixer": "shapes", "proven": ["Count by summing one-hot vectors"]}
