"""A layer that was scripted years ago to be faster."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.jit.script(torch.nn.Linear(4, 8))
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.project(x)  # <- break
        return self.head(hidden.relu())


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"since": "2.13", "fixer": "attributes", "proven": ["Remove TorchScript, so that torch.compile traces the module"]}
