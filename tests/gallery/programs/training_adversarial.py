"""A step against the model: the input moved along the sign of its gradient."""

import torch


class Attack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def forward(self, x, label):
        moved = x.detach().requires_grad_(True)  # <- break
        loss = torch.nn.functional.cross_entropy(self.model(moved), label)
        slope = torch.autograd.grad(loss, moved)[0]  # <- break
        return (x + 0.1 * slope.sign()).detach()


target = Attack()


def inputs():
    return (torch.randn(3, 4), torch.tensor([0, 1, 1]))


EXPECTED = {"fixer": "training", "proven": ["Let torch trace the backward pass too"]}
