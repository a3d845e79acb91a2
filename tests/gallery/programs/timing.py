"""The time of a layer, measured and kept on the side."""

from time import perf_counter

import torch


class Timed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.seconds = []

    def forward(self, x):
        started = perf_counter()  # <- break
        y = self.layer(x).relu()
        elapsed = perf_counter() - started  # <- break
        self.seconds.append(elapsed)
        return y.sum()


target = Timed()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "builtins", "proven": ["Do it only in eager mode"]}
