"""A mask of sequences as long as the longest of them."""

import torch


def target(values, lengths):
    steps = torch.arange(lengths.max())  # <- break
    mask = steps[None, :] < lengths[:, None]
    return (values.sum() * mask).cumsum(1)


def inputs():
    return torch.randn(3, 5), torch.tensor([2, 5, 3])


EXPECTED = {"fixer": "shapes", "proven": ["Let the graph contain numbers from tensors"]}
