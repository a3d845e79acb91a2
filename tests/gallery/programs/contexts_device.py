"""Tensors made on a device by a `with` around the code that makes them."""

import torch


def target(x):
    with torch.device(x.device):  # <- break
        steps = torch.arange(x.shape[-1])
    return (x * steps).sum()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "contexts"}
