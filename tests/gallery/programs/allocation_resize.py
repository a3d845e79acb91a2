"""A buffer that is made empty and gets its shape from the input."""

import torch


def target(x):
    total = torch.empty(0)
    total.resize_(x.shape[0], 2)  # <- break
    total[:, 0] = x.sum(1)
    total[:, 1] = x.amax(1)
    return total.relu()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "allocation", "proven": ["Create a tensor of that shape"]}
