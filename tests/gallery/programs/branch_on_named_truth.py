"""A truth value gets a name first, and Python branches on it later."""

import torch


def target(logits, mask):
    has_padding = bool(mask.any())  # <- break
    scores = logits * 0.5
    if has_padding:
        scores = scores.masked_fill(mask, -1e4)
    return torch.softmax(scores, dim=-1)


def inputs():
    return (torch.randn(2, 5, requires_grad=True), torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool())


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where"]}
