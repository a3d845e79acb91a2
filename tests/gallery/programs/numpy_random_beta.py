"""Mixup: the share of each picture is drawn from numpy's generator."""

import numpy as np
import torch


def target(images):
    share = np.random.beta(0.4, 0.4)  # <- break
    return (share * images + (1 - share) * images.flip(0)).mean() * 0


def inputs():
    return (torch.randn(4, 3, requires_grad=True),)


EXPECTED = {"fixer": "numpy_calls"}
