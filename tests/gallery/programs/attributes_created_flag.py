"""A mask that is made with requires_grad=True, out of habit."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        mask = torch.ones(4, dtype=x.dtype, requires_grad=True)  # <- break
        return self.layer(x * mask).relu()


target = Model()


def inputs():
    return (torch.randn(2, 4),)


EXPECTED = {"fixer": "attributes", "proven": ["Create the tensor without requires_grad"]}
