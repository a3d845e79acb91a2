"""Killed in the middle of a compilation, as by an out-of-memory killer."""

import os
import signal

import torch


def backend(graph, inputs):
    os.kill(os.getpid(), signal.SIGKILL)


@torch.compile(backend="eager")
def first(x):
    return x.sin()


@torch.compile(backend=backend)
def second(x):
    print("a break before the end")
    return x.cos()


first(torch.ones(2))
second(torch.ones(2))
