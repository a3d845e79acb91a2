"""More of Hock and Schittkowski's collection: problems whose constraints are mostly equations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .case import Values
from .catalog import catalog
from .hock_schittkowski import bounds, hock_schittkowski, product_equalities
from .solutions import SOLVED


def hs26(x: Tensor) -> Values:
    return (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4, None, ((1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3).reshape(1)


def hs27(x: Tensor) -> Values:
    return 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2, None, (x[0] + x[2] ** 2 + 1).reshape(1)


def hs28(x: Tensor) -> Values:
    return (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, None, (x[0] + 2 * x[1] + 3 * x[2] - 1).reshape(1)


def hs40(x: Tensor) -> Values:
    equality = torch.stack([x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]])
    return -x[0] * x[1] * x[2] * x[3], None, equality


def hs42(x: Tensor) -> Values:
    value = ((x - x.new_tensor([1.0, 2.0, 3.0, 4.0])) ** 2).sum()
    return value, None, torch.stack([x[0] - 2, x[2] ** 2 + x[3] ** 2 - 2])


def hs46(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6
    equality = torch.stack([x[0] ** 2 * x[3] + torch.sin(x[3] - x[4]) - 1, x[1] + x[2] ** 4 * x[3] ** 2 - 2])
    return value, None, equality


def hs48(x: Tensor) -> Values:
    value = (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2
    return value, None, torch.stack([x.sum() - 5, x[2] - 2 * (x[3] + x[4]) + 3])


def hs49(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6
    return value, None, torch.stack([x[0] + x[1] + x[2] + 4 * x[3] - 7, x[2] + 5 * x[4] - 6])


def hs50(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2 + (x[2] - x[3]) ** 4 + (x[3] - x[4]) ** 2
    return value, None, x[:3] + 2 * x[1:4] + 3 * x[2:] - 6


def linked_equalities(x: Tensor, level: float) -> Tensor:
    """The three linear equations of HS51, HS52 and HS53."""
    return torch.stack([x[0] + 3 * x[1] - level, x[2] + x[3] - 2 * x[4], x[1] - x[4]])


def hs51(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2
    return value, None, linked_equalities(x, 4.0)


def hs52(x: Tensor) -> Values:
    value = (4 * x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2
    return value, None, linked_equalities(x, 0.0)


def hs53(x: Tensor) -> Values:
    value = (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2
    return value, bounds(x, (-10.0,) * 5, (10.0,) * 5), linked_equalities(x, 0.0)


def hs56(x: Tensor) -> Values:
    waves = torch.sin(x[3:]) ** 2 * x.new_tensor([4.2, 4.2, 4.2, 7.2])
    amounts = torch.cat([x[:3], (x[0] + 2 * x[1] + 2 * x[2]).reshape(1)])
    return -x[0] * x[1] * x[2], None, amounts - waves


def hs60(x: Tensor) -> Values:
    value = (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4
    equality = (x[0] * (1 + x[1] ** 2) + x[2] ** 4 - 4 - 3 * math.sqrt(2)).reshape(1)
    return value, bounds(x, (-10.0,) * 3, (10.0,) * 3), equality


def hs61(x: Tensor) -> Values:
    value = 4 * x[0] ** 2 + 2 * x[1] ** 2 + 2 * x[2] ** 2 - 33 * x[0] + 16 * x[1] - 24 * x[2]
    return value, None, torch.stack([3 * x[0] - 2 * x[1] ** 2 - 7, 4 * x[0] - x[2] ** 2 - 11])


def hs63(x: Tensor) -> Values:
    value = 1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2]
    return value, -x, torch.stack([8 * x[0] + 14 * x[1] + 7 * x[2] - 56, (x**2).sum() - 25])


def hs79(x: Tensor) -> Values:
    value = (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 2 + (x[2] - x[3]) ** 4 + (x[3] - x[4]) ** 4
    root = math.sqrt(2)
    equality = [x[0] + x[1] ** 2 + x[2] ** 3 - 2 - 3 * root, x[1] - x[2] ** 2 + x[3] + 2 - 2 * root, x[0] * x[4] - 2]
    return value, None, torch.stack(equality)


PRODUCT_BOUNDS = (2.3, 2.3, 3.2, 3.2, 3.2)


def hs80(x: Tensor) -> Values:
    value = torch.exp(x[0] * x[1] * x[2] * x[3] * x[4])
    return value, bounds(x, tuple(-bound for bound in PRODUCT_BOUNDS), PRODUCT_BOUNDS), product_equalities(x)


def hs81(x: Tensor) -> Values:
    value, inequality, equality = hs80(x)
    return value - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2, inequality, equality


THIRD = (0.5, -0.5, 0.5)
ROOT = math.sqrt(2)
HS40_SOLUTION = (2 ** (-1 / 3), 2 ** (-1 / 2), 2 ** (-11 / 12), 2 ** (-1 / 4))
HS46_START = (ROOT / 2, 1.75, 0.5, 2.0, 2.0)
HS52_SOLUTION = tuple(value / 349 for value in (-33.0, 11.0, 180.0, -158.0, 11.0))
HS53_SOLUTION = tuple(value / 43 for value in (-33.0, 11.0, 27.0, -5.0, 11.0))
HS56_START = (1.0, 1.0, 1.0, *(math.asin(math.sqrt(1 / 4.2)),) * 3, math.asin(math.sqrt(5 / 7.2)))

EQUALITIES = catalog(
    hock_schittkowski(26, hs26, (-2.6, 2.0, 2.0), 0.0, (1.0,) * 3, start_value=21.16, equalities=1),
    hock_schittkowski(27, hs27, (2.0,) * 3, 0.04, (-1.0, 1.0, 0.0), start_value=4.01, equalities=1),
    hock_schittkowski(28, hs28, (-4.0, 1.0, 1.0), 0.0, THIRD, start_value=13.0, equalities=1, convex=True),
    hock_schittkowski(40, hs40, (0.8,) * 4, -0.25, HS40_SOLUTION, start_value=-0.4096, equalities=3),
    hock_schittkowski(42, hs42, (1.0,) * 4, 28 - 10 * ROOT, (2.0, 2.0, 0.6 * ROOT, 0.8 * ROOT), start_value=14.0, equalities=2),
    hock_schittkowski(46, hs46, HS46_START, 0.0, (1.0,) * 5, equalities=2),
    hock_schittkowski(48, hs48, (3.0, 5.0, -3.0, 2.0, -2.0), 0.0, (1.0,) * 5, start_value=84.0, equalities=2, convex=True),
    hock_schittkowski(
        49, hs49, (10.0, 7.0, 2.0, -3.0, 0.8), 0.0, (1.0,) * 5, start_value=266.000064, equalities=2, convex=True
    ),
    hock_schittkowski(50, hs50, (35.0, -31.0, 11.0, 5.0, -5.0), 0.0, (1.0,) * 5, start_value=7516.0, equalities=3, convex=True),
    hock_schittkowski(51, hs51, (2.5, 0.5, 2.0, -1.0, 0.5), 0.0, (1.0,) * 5, start_value=8.5, equalities=3, convex=True),
    hock_schittkowski(52, hs52, (2.0,) * 5, 1859 / 349, HS52_SOLUTION, start_value=42.0, equalities=3, convex=True),
    hock_schittkowski(
        53, hs53, (2.0,) * 5, 176 / 43, HS53_SOLUTION, start_value=6.0, inequalities=10, equalities=3, convex=True
    ),
    hock_schittkowski(56, hs56, HS56_START, *SOLVED["hs56"], start_value=-1.0, equalities=4),
    hock_schittkowski(60, hs60, (2.0,) * 3, *SOLVED["hs60"], start_value=1.0, inequalities=6, equalities=1),
    hock_schittkowski(61, hs61, (0.0,) * 3, *SOLVED["hs61"], start_value=0.0, equalities=2),
    hock_schittkowski(63, hs63, (2.0,) * 3, *SOLVED["hs63"], start_value=976.0, inequalities=3, equalities=2),
    hock_schittkowski(79, hs79, (2.0,) * 5, *SOLVED["hs79"], start_value=1.0, equalities=3),
    hock_schittkowski(
        80, hs80, (-2.0, 2.0, 2.0, -1.0, -1.0), *SOLVED["hs80"], start_value=math.exp(-8), inequalities=10, equalities=3
    ),
    hock_schittkowski(
        81, hs81, (-2.0, 2.0, 2.0, -1.0, -1.0), *SOLVED["hs81"], start_value=math.exp(-8) - 0.5, inequalities=10, equalities=3
    ),
)
