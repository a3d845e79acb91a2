"""A scale that is made a Parameter in the forward, where no optimizer finds it."""

import torch


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        scale = torch.nn.Parameter(hidden.std() + 1e-5, requires_grad=False)  # <- break
        return hidden / scale


target = Norm()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "attributes", "proven": ["Use a plain tensor"]}
