"""Missing readings replaced by the mean of the others."""

import numpy as np
import torch


def target(readings):
    values = readings.detach().cpu().numpy()
    mean = torch.as_tensor(np.nanmean(values, axis=0))  # <- break
    return torch.where(torch.isnan(readings), mean, readings)


def inputs():
    readings = torch.randn(5, 3)
    readings[1, 2] = readings[4, 0] = float("nan")
    return (readings,)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.nanmean with functions that torch translates"]}
