"""Votes added up with a method of a numpy function."""

import numpy as np
import torch


def target(votes):
    total = np.add.reduce(votes.numpy())  # <- break
    return torch.from_numpy(total).softmax(0)


def inputs():
    return (torch.randn(5, 4),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.add.reduce with functions that torch translates"]}
