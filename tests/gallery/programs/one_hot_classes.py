"""One-hot labels without the number of classes: only the data say how wide they are."""

import torch
from torch.nn import functional


def target(logits, labels):
    wanted = functional.one_hot(labels).float()  # <- break
    return ((logits.softmax(1) - wanted) ** 2).mean()


def inputs():
    return torch.randn(4, 3, requires_grad=True), torch.tensor([0, 2, 1, 2])


EXPECTED = {"fixer": "shapes"}
