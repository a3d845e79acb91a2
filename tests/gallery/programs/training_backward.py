"""A loss that goes backward by itself, as old training loops had it."""

import torch


class Learner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        loss = self.layer(x).square().mean()
        loss.backward()  # <- break
        return loss.detach()


target = Learner()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "training", "proven": ["Let torch trace the backward pass too"]}
