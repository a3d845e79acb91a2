"""A grid of coordinates for a convolution that knows where it is."""

import numpy as np
import torch


def target(features):
    height, width = features.shape[-2:]
    rows, columns = np.mgrid[0:height, 0:width]  # <- break
    return features + torch.from_numpy(rows) / height - torch.from_numpy(columns) / width


def inputs():
    return (torch.randn(2, 4, 5, requires_grad=True),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.mgrid with np.indices"]}
