"""An early return where nothing has to be done."""

import torch


def target(x, mask):
    filled = x.masked_fill(mask, 0.0)
    if not mask.any():  # <- break
        return x * 1.0
    # The rest makes up for what was left out.
    return filled * (mask.numel() / (~mask).sum().clamp(min=1))


def inputs():
    return (torch.randn(3, 4, requires_grad=True), torch.arange(12).view(3, 4) % 5 == 0)


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
