"""The row of the best score, with the index left in a tensor."""

import torch


def target(candidates, scores):
    best = scores.argmax()
    return candidates[best] * 2  # <- break


def inputs():
    return torch.randn(5, 3, requires_grad=True), torch.tensor([0.1, 0.5, 0.9, 0.3, 0.2])


EXPECTED = {"fixer": "shapes", "proven": ["Index with a tensor of one element"]}
