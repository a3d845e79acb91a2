"""A stop watch as a class, whose time is asked for after the `with`."""

import time

import torch


class StopWatch:
    def __enter__(self):
        self.start = time.monotonic()  # <- break
        return self

    def __exit__(self, *error):
        self.seconds = time.monotonic() - self.start


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seconds = torch.nn.Linear(4, 4), {}

    def forward(self, x):
        with StopWatch() as watch:
            hidden = self.layer(x)
        self.seconds["layer"] = watch.seconds
        return hidden.relu()


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "foreign", "proven": ["Measure time only in eager mode"]}
