"""A module whose gradients are watched by a hook."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.layer.register_full_backward_hook(lambda module, before, after: None)

    def forward(self, x):
        return self.layer(x).relu().sum()  # <- break


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "training", "proven": ["Compile the backward pass when it runs, including hooks"]}
