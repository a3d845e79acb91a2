"""Noise for activations that have died, in training only."""

import torch


class Revive(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.boost = torch.nn.Parameter(torch.ones(4) * 0.1)

    def forward(self, x):
        active = self.layer(x).relu()
        if self.training and active.mean() < 0.2:  # <- break
            active += self.boost
        return active.sum(dim=-1)


target = Revive()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "branches", "proven": ["Choose with torch.where", "Choose with torch.cond"]}
