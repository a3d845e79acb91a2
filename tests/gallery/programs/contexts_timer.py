"""A timer as a context manager, which prints what it has measured."""

import time
from contextlib import contextmanager

import torch


@contextmanager
def timed(what):
    start = time.perf_counter()  # <- break
    yield
    print(f"{what}: {time.perf_counter() - start:.6f} s")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        with timed("encoder"):
            hidden = self.encoder(x).relu()
        with timed("head"):
            return self.head(hidden)


target = Model()


def inputs():
    return (torch.randn(3, 4),)


EXPECTED = {"fixer": "contexts", "proven": ["Enter the context manager only in eager mode"]}
