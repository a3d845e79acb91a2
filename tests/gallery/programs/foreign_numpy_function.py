"""A curve looked up with numpy, in a function of its own, without a gradient."""

import numpy as np
import torch


def curve(x, low=-1.0):
    array = x.detach().cpu().numpy()
    array = np.interp(array, [low, 1.0], [0.0, 1.0]).astype("float32")  # <- break
    return torch.from_numpy(array)


def target(x, w):
    h = x @ w
    return (h * curve(h)).sum()


def inputs():
    return (torch.randn(3, 4), torch.randn(4, 4, requires_grad=True))


EXPECTED = {"fixer": "foreign", "proven": ["Register the function as a custom operator"]}
