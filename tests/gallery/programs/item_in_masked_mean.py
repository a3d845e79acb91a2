"""The mean over what a mask keeps, with the count as a Python number."""

import torch


def target(values, mask):
    kept = values * mask
    return kept.sum(dim=1) / mask.sum().item()  # <- break


def inputs():
    return (torch.randn(4, 6, requires_grad=True), (torch.arange(24).view(4, 6) % 3 > 0).float())


EXPECTED = {
    "fixer": "scalars",
    "proven": ["Leave the number in its tensor, without a gradient", "Let graphs contain numbers from tensors"],
}
