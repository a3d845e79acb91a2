"""Several states are updated together."""

import torch


def target(value, best, stale):
    score = value.square().mean()
    if score < best:  # <- break
        gain = best - score
        best = score
        stale = stale * 0
    else:
        gain = score * 0.0
        stale = stale + 1
    return best, stale, gain.tanh() * value


def inputs():
    return (torch.randn(5, requires_grad=True), torch.tensor(0.9), torch.tensor(3))


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where"]}
