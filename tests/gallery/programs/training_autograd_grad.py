"""A gradient penalty: the slope of the critic at its inputs is held near one."""

import torch


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def forward(self, x):
        score = self.layers(x)
        (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)  # <- break
        return ((slope.norm(dim=1) - 1) ** 2).mean()


target = Critic()


def inputs():
    return (torch.randn(3, 4, requires_grad=True),)


EXPECTED = {"fixer": "training", "proven": ["Let torch trace the backward pass too"]}
