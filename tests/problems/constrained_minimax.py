"""Minimax problems with linear constraints, of Lukšan and Vlček's collection (TR-798)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Case, largest
from .catalog import catalog
from .constrained import MADSEN
from .solutions import SOLVED

CHECKED = f"{MADSEN}, formula from memory; lifted problem gives the collection's optimum"


def mad4_pieces(x: Tensor) -> Tensor:
    """Not defined for x2 <= 0."""
    return torch.stack([-torch.exp(x[0] - x[1]), torch.sinh(x[0] - 1) - 1, -torch.log(x[1]) - 1])


def mad4_limit(x: Tensor) -> Tensor:
    return (-0.05 * x[0] + x[1] - 0.5).reshape(1)


def mad5_limit(x: Tensor) -> Tensor:
    return (0.9 * x[0] - x[1] + 1).reshape(1)


def pentagon_pieces(x: Tensor) -> Tensor:
    """Three points, as far apart as possible: minus the distances of the pairs."""
    points = x.reshape(3, 2)
    return -torch.linalg.vector_norm(points - points[[1, 2, 0]], dim=1)


def pentagon_limits(x: Tensor) -> Tensor:
    angles = (2 * math.pi / 5 * torch.arange(5, dtype=torch.float64)).to(x)
    return (x.reshape(3, 2) @ torch.stack([angles.cos(), angles.sin()]) - 1).reshape(-1)


CONSTRAINED_MINIMAX = catalog(
    Case(
        name="mad4",
        function=largest(mad4_pieces, mad4_limit),
        pieces=mad4_pieces,
        n=2,
        start=(-1.0, 0.01),
        optimum=SOLVED["mad4"][0],
        solution=SOLVED["mad4"][1],
        inequalities=1,
        source=CHECKED,
    ),
    Case(
        name="mad5",
        function=largest(mad4_pieces, mad5_limit),
        pieces=mad4_pieces,
        n=2,
        start=(-1.0, 3.0),
        optimum=SOLVED["mad5"][0],
        solution=SOLVED["mad5"][1],
        inequalities=1,
        source=CHECKED,
    ),
    Case(
        name="pentagon",
        function=largest(pentagon_pieces, pentagon_limits),
        pieces=pentagon_pieces,
        n=6,
        start=(-1.0, 0.0, 0.0, -1.0, 1.0, 1.0),
        optimum=SOLVED["pentagon"][0],
        solution=SOLVED["pentagon"][1],
        inequalities=15,
        source=CHECKED,
    ),
)
