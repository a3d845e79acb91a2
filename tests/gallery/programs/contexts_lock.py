"""A model that several threads of a server share."""

import threading

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.lock = threading.Lock()

    def forward(self, x):
        with self.lock:  # <- break
            hidden = self.layer(x)
        return hidden.relu()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "contexts"}  # that nobody else is there cannot be proven: the lock goes around the call, by hand
