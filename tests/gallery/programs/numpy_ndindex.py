"""Windows of a picture, visited with numpy.ndindex."""

import numpy as np
import torch


def target(image):
    total = image.new_zeros(2, 2)
    for row, column in np.ndindex(3, 3):  # <- break
        total = total + image[row : row + 2, column : column + 2]
    return total / 9


def inputs():
    return (torch.randn(4, 4, requires_grad=True),)


EXPECTED = {"fixer": "numpy_calls", "proven": ["Replace np.ndindex with functions that torch translates"]}
