"""numpy's warnings switched off around a logarithm."""

import numpy as np
import torch


def target(counts):
    with np.errstate(divide="ignore"):  # <- break
        information = -np.log(counts.numpy())
    return torch.from_numpy(information).clamp(max=10.0)


def inputs():
    return (torch.tensor([0.0, 0.25, 0.5, 1.0]),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.errstate with functions that torch translates"]}
