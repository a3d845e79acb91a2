"""A program that compiles something and then ends badly in one of several ways: endings.py HOW …"""

import os
import signal
import sys
from pathlib import Path

import torch


def double(x):
    return x * 2


def talkative(x):
    print("tracing breaks here")
    return x * 2


print(sys.argv[1:], __name__, Path(__file__).name)
print(torch.compile(double, backend="eager")(torch.ones(2)).tolist(), flush=True)
how = sys.argv[1]
if how == "raise":
    raise KeyError("no such thing")
if how == "exit":
    sys.exit(17)
if how == "signal":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "fullgraph":
    torch.compile(talkative, backend="eager", fullgraph=True)(torch.ones(2))
