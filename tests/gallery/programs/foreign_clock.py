"""A forward that keeps how long its parts take."""

import time

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.seconds = []

    def forward(self, x):
        start = time.perf_counter()  # <- break
        hidden = self.layer(x)
        self.seconds.append(time.perf_counter() - start)  # <- break
        return hidden.relu().sum()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Measure time only in eager mode"]}
