"""A schedule that is interpolated with numpy; torch has no function for it."""

import numpy as np
import torch


def target(x, times):
    scale = np.interp(times.numpy(), [0.0, 0.5, 1.0], [1.0, 0.2, 0.1])  # <- break
    return x * torch.from_numpy(scale)


def inputs():
    return torch.randn(4, requires_grad=True), torch.rand(4)


EXPECTED = {"fixer": "numpy_calls"}
