"""A picture with a frame of zeros, made with numpy."""

import numpy as np
import torch


def target(image):
    framed = torch.from_numpy(np.pad(image.numpy(), ((0, 0), (1, 1), (2, 2))))  # <- break
    return torch.nn.functional.avg_pool2d(framed, 2)


def inputs():
    return (torch.randn(3, 6, 6),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.pad with functions that torch translates"]}
