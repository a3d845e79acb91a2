"""More of Hock and Schittkowski's collection: problems whose constraints are mostly inequalities and bounds."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Constant, Values
from .catalog import catalog
from .hock_schittkowski import bounds, hock_schittkowski
from .solutions import SOLVED


def hs1(x: Tensor) -> Values:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, (-1.5 - x[1]).reshape(1), None


def hs21(x: Tensor) -> Values:
    inequality = torch.cat([(10 - 10 * x[0] + x[1]).reshape(1), bounds(x, (2.0, -50.0), (50.0, 50.0))])
    return 0.01 * x[0] ** 2 + x[1] ** 2 - 100, inequality, None


def hs22(x: Tensor) -> Values:
    return (x[0] - 2) ** 2 + (x[1] - 1) ** 2, torch.stack([x[0] + x[1] - 2, x[0] ** 2 - x[1]]), None


def hs24(x: Tensor) -> Values:
    root = math.sqrt(3)
    edges = torch.stack([x[1] - x[0] / root, -x[0] - root * x[1], x[0] + root * x[1] - 6])
    return ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * root), torch.cat([edges, -x]), None


def hs29(x: Tensor) -> Values:
    return -x[0] * x[1] * x[2], (x[0] ** 2 + 2 * x[1] ** 2 + 4 * x[2] ** 2 - 48).reshape(1), None


def hs30(x: Tensor) -> Values:
    circle = (1 - x[0] ** 2 - x[1] ** 2).reshape(1)
    return (x**2).sum(), torch.cat([circle, bounds(x, (1.0, -10.0, -10.0), (10.0,) * 3)]), None


def hs31(x: Tensor) -> Values:
    inequality = torch.cat([(1 - x[0] * x[1]).reshape(1), bounds(x, (-10.0, 1.0, -10.0), (10.0, 10.0, 1.0))])
    return 9 * x[0] ** 2 + x[1] ** 2 + 9 * x[2] ** 2, inequality, None


def exponential_limits(x: Tensor) -> Tensor:
    """The constraints that HS34 and HS66 share."""
    towers = torch.stack([torch.exp(x[0]) - x[1], torch.exp(x[1]) - x[2]])
    return torch.cat([towers, bounds(x, (0.0,) * 3, (100.0, 100.0, 10.0))])


def hs34(x: Tensor) -> Values:
    return -x[0], exponential_limits(x), None


def hs35(x: Tensor) -> Values:
    value = 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2
    value = value + 2 * x[0] * x[1] + 2 * x[0] * x[2]
    return value, torch.cat([(x[0] + x[1] + 2 * x[2] - 3).reshape(1), -x]), None


def hs36(x: Tensor) -> Values:
    girth = (x[0] + 2 * x[1] + 2 * x[2] - 72).reshape(1)
    return -x[0] * x[1] * x[2], torch.cat([girth, bounds(x, (0.0,) * 3, (20.0, 11.0, 42.0))]), None


def hs37(x: Tensor) -> Values:
    girth = x[0] + 2 * x[1] + 2 * x[2]
    return -x[0] * x[1] * x[2], torch.cat([torch.stack([girth - 72, -girth]), bounds(x, (0.0,) * 3, (42.0,) * 3)]), None


def hs65(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2
    return value, torch.cat([((x**2).sum() - 48).reshape(1), bounds(x, (-4.5, -4.5, -5.0), (4.5, 4.5, 5.0))]), None


def hs66(x: Tensor) -> Values:
    return 0.2 * x[2] - 0.8 * x[0], exponential_limits(x), None


def hs73(x: Tensor) -> Values:
    """Cattle feed: a least-cost mixture with a chance constraint."""
    spread = (x.new_tensor([0.28, 0.19, 20.5, 0.62]) * x**2).sum().sqrt()
    protein = 5 - (x.new_tensor([2.3, 5.6, 11.1, 1.3]) * x).sum()
    fat = 21 + 1.645 * spread - (x.new_tensor([12.0, 11.9, 41.8, 52.1]) * x).sum()
    cost = (x.new_tensor([24.55, 26.75, 39.0, 40.5]) * x).sum()
    return cost, torch.cat([torch.stack([protein, fat]), -x]), (x.sum() - 1).reshape(1)


def hs76(x: Tensor) -> Values:
    value = x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2 + 0.5 * x[3] ** 2 - x[0] * x[2] + x[2] * x[3]
    value = value - x[0] - 3 * x[1] + x[2] - x[3]
    rows = x.new_tensor([[1.0, 2.0, 1.0, 1.0], [3.0, 1.0, 2.0, -1.0], [0.0, -1.0, -4.0, 0.0]])
    return value, torch.cat([rows @ x - x.new_tensor([5.0, 4.0, -1.5]), -x]), None


COLVILLE_ROWS = Constant(
    (
        *((-16.0, 2.0, 0.0, 1.0, 0.0), (0.0, -2.0, 0.0, 0.4, 2.0), (-3.5, 0.0, 2.0, 0.0, 0.0), (0.0, -2.0, 0.0, -4.0, -1.0)),
        *((0.0, -9.0, -2.0, 1.0, -2.8), (2.0, 0.0, -4.0, 0.0, 0.0), (-1.0,) * 5, (-1.0, -2.0, -3.0, -2.0, -1.0)),
        *((1.0, 2.0, 3.0, 4.0, 5.0), (1.0,) * 5),
    )
)
COLVILLE_LIMITS = Constant((-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0))
COLVILLE_MATRIX = Constant(
    (
        *((30.0, -20.0, -10.0, 32.0, -10.0), (-20.0, 39.0, -6.0, -31.0, 32.0), (-10.0, -6.0, 10.0, -6.0, -10.0)),
        *((32.0, -31.0, -6.0, 39.0, -20.0), (-10.0, 32.0, -10.0, -20.0, 30.0)),
    )
)


def colville_terms(x: Tensor) -> tuple[Tensor, Tensor]:
    """Objective and the ten linear constraints (<= 0) of Colville's first problem, without x >= 0."""
    value = (x.new_tensor([4.0, 8.0, 10.0, 6.0, 2.0]) * x**3).sum() + x @ (COLVILLE_MATRIX(x) @ x)
    value = value + (x.new_tensor([-15.0, -27.0, -36.0, -18.0, -12.0]) * x).sum()
    return value, COLVILLE_LIMITS(x) - COLVILLE_ROWS(x) @ x


def hs86(x: Tensor) -> Values:
    value, rows = colville_terms(x)
    return value, torch.cat([rows, -x]), None


def hs93(x: Tensor) -> Values:
    """Transformer design."""
    first, second = x[0] * x[3] * (x[0] + x[1] + x[2]), x[1] * x[2] * (x[0] + 1.57 * x[1] + x[3])
    value = first * (0.0204 + 0.0607 * x[4] ** 2) + second * (0.0187 + 0.0437 * x[5] ** 2)
    losses = 0.00062 * first * x[4] ** 2 + 0.00058 * second * x[5] ** 2 - 1
    return value, torch.cat([torch.stack([2.07 - 0.001 * x.prod(), losses]), -x]), None


def hs106(x: Tensor) -> Values:
    """Heat exchanger design; badly scaled: x from 10 to 10000, and products of them."""
    inequality = [
        0.0025 * (x[3] + x[5]) - 1,
        0.0025 * (x[4] + x[6] - x[3]) - 1,
        0.01 * (x[7] - x[4]) - 1,
        833.33252 * x[3] + 100 * x[0] - 83333.333 - x[0] * x[5],
        1250 * x[4] + x[1] * x[3] - 1250 * x[3] - x[1] * x[6],
        1250000 + x[2] * x[4] - 2500 * x[4] - x[2] * x[7],
    ]
    box = bounds(x, (100.0, 1000.0, 1000.0, *(10.0,) * 5), (*(10000.0,) * 3, *(1000.0,) * 5))
    return x[0] + x[1] + x[2], torch.cat([torch.stack(inequality), box]), None


HS93_START = (5.54, 4.4, 12.02, 11.82, 0.702, 0.852)
HS106_START = (5000.0, 5000.0, 5000.0, 200.0, 350.0, 150.0, 225.0, 425.0)
TOWER = (math.log(math.log(10)), math.log(10), 10.0)
TOWER_START = (0.0, 1.05, 2.9)

INEQUALITIES = catalog(
    hock_schittkowski(1, hs1, (-2.0, 1.0), 0.0, (1.0, 1.0), start_value=909.0, inequalities=1),
    hock_schittkowski(21, hs21, (-1.0, -1.0), -99.96, (2.0, 0.0), start_value=-98.99, inequalities=5, convex=True),
    hock_schittkowski(22, hs22, (2.0, 2.0), 1.0, (1.0, 1.0), start_value=1.0, inequalities=2, convex=True),
    hock_schittkowski(24, hs24, (1.0, 0.5), -1.0, (3.0, math.sqrt(3)), start_value=-0.013364591885707, inequalities=5),
    hock_schittkowski(29, hs29, (1.0,) * 3, -16 * math.sqrt(2), (4.0, 2 * math.sqrt(2), 2.0), start_value=-1.0, inequalities=1),
    hock_schittkowski(30, hs30, (1.0,) * 3, 1.0, (1.0, 0.0, 0.0), start_value=3.0, inequalities=7),
    hock_schittkowski(31, hs31, (1.0,) * 3, 6.0, (3**-0.5, 3**0.5, 0.0), start_value=19.0, inequalities=7),
    hock_schittkowski(34, hs34, TOWER_START, -TOWER[0], TOWER, start_value=0.0, inequalities=8, convex=True),
    hock_schittkowski(35, hs35, (0.5,) * 3, 1 / 9, (4 / 3, 7 / 9, 4 / 9), start_value=2.25, inequalities=4, convex=True),
    hock_schittkowski(36, hs36, (10.0,) * 3, -3300.0, (20.0, 11.0, 15.0), start_value=-1000.0, inequalities=7),
    hock_schittkowski(37, hs37, (10.0,) * 3, -3456.0, (24.0, 12.0, 12.0), start_value=-1000.0, inequalities=8),
    hock_schittkowski(65, hs65, (-5.0, 5.0, 0.0), *SOLVED["hs65"], start_value=1225 / 9, inequalities=7, convex=True),
    hock_schittkowski(66, hs66, TOWER_START, *SOLVED["hs66"], start_value=0.58, inequalities=8, convex=True),
    hock_schittkowski(73, hs73, (1.0,) * 4, *SOLVED["hs73"], start_value=130.8, inequalities=6, equalities=1, convex=True),
    hock_schittkowski(76, hs76, (0.5,) * 4, *SOLVED["hs76"], start_value=-1.25, inequalities=7, convex=True),
    hock_schittkowski(86, hs86, (0.0, 0.0, 0.0, 0.0, 1.0), *SOLVED["hs86"], start_value=20.0, inequalities=15, convex=True),
    hock_schittkowski(93, hs93, HS93_START, *SOLVED["hs93"], start_value=137.066, inequalities=8),
    hock_schittkowski(106, hs106, HS106_START, *SOLVED["hs106"], start_value=15000.0, inequalities=22),
)
