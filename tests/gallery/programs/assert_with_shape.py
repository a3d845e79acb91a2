"""An assertion about the contents of a tensor, whose message is put together when it fails."""

import torch


def target(probabilities):
    total = probabilities.abs().sum(dim=-1)
    assert (total >= 0).all(), f"{probabilities.shape} does not hold probabilities"  # <- break
    return probabilities / total.unsqueeze(-1).clamp(min=1e-6)


def inputs():
    return (torch.rand(3, 4).requires_grad_(),)


EXPECTED = {
    "fixer": "branches",
    "proven": ["Let the graph check it", "Check only in eager mode"],
}
