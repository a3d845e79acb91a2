"""A curve in pieces, written with numpy.select."""

import numpy as np
import torch


def target(x):
    a = x.numpy()
    shaped = np.select([a < -1, a > 1], [-1 - np.log(-a), 1 + np.log(np.abs(a))], a)  # <- break
    return torch.from_numpy(shaped) * 2


def inputs():
    return (torch.linspace(-4, 4, 12),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.select with functions that torch translates"]}
