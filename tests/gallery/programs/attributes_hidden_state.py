"""The first hidden state of a recurrent cell, as many tutorials make it."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 8)

    def forward(self, x):
        state = torch.zeros(x.size(0), 8).requires_grad_()  # <- break
        for step in range(x.size(1)):
            state = self.cell(x[:, step], state)
        return state


target = Model()


def inputs():
    return (torch.randn(2, 3, 4),)


EXPECTED = {"fixer": "attributes", "proven": ["Create the tensor without requires_grad"]}
