"""The mean of the rows that a detector is sure of."""

import torch


def target(boxes, scores):
    kept = boxes[scores > 0.5].mean(0)  # <- break
    return boxes - kept


def inputs():
    return torch.randn(6, 4, requires_grad=True), torch.tensor([0.9, 0.2, 0.7, 0.6, 0.1, 0.8])


EXPECTED = {"fixer": "shapes", "proven": ["Put neutral values where the mask is false, row by row"]}
