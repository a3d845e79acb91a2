"""A module of a program's own: its attributes are read by others."""

from __future__ import annotations

from torch import Tensor

SCALE = 1.5
CHOICES = {"power": 2.0, "names": ["tanh", "sin"]}


def shift(x: Tensor) -> Tensor:
    return x + SHIFT


SHIFT = 0.25
