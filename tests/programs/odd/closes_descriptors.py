"""Closes every descriptor it did not open, as daemons do, and then opens a file of its own."""

import os
import sys
from pathlib import Path

import torch

os.closerange(3, 1024)
first = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(first, b"mine\n")
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
torch.compile(lambda x: x + 2, backend="eager")(torch.ones(2))
print(first, Path(sys.argv[1]).stat().st_size)
