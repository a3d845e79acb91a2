"""A function that numpy has and torch has not, in the middle of a forward."""

import numpy as np
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        curve = torch.from_numpy(np.interp(hidden.detach().cpu().numpy(), [-1.0, 1.0], [0.0, 1.0])).to(hidden.dtype)  # <- break
        return (hidden * curve).sum()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Register the call as a custom operator"]}
