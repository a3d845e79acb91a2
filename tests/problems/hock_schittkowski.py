"""Smooth problems with constraints: the ones of Hock and Schittkowski's collection that are used most.

All formulas are from memory and accepted because values and solutions came out right; bounds are inequalities. The
starting points are the usual ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .case import Case, Values
from .catalog import catalog
from .solutions import SOLVED
from .unconstrained import rosen_suzuki_terms


def bounds(x: Tensor, lower: tuple[float, ...] | None = None, upper: tuple[float, ...] | None = None) -> Tensor:
    """lower - x and x - upper, without the infinite ones."""
    parts = []
    if lower is not None:
        kept = [i for i, bound in enumerate(lower) if math.isfinite(bound)]
        parts.append(x.new_tensor([lower[i] for i in kept]) - x[kept])
    if upper is not None:
        kept = [i for i, bound in enumerate(upper) if math.isfinite(bound)]
        parts.append(x[kept] - x.new_tensor([upper[i] for i in kept]))
    return torch.cat(parts)


def hock_schittkowski(
    number: int,
    function: Callable[[Tensor], Values],
    start: tuple[float, ...],
    optimum: float,
    solution: tuple[float, ...] | None = None,
    *,
    start_value: float | None = None,
    inequalities: int = 0,
    equalities: int = 0,
    convex: bool = False,
) -> Case:
    """A case of the collection by its number."""
    return Case(
        name=f"hs{number}",
        function=function,
        n=len(start),
        start=start,
        optimum=optimum,
        solution=solution,
        start_value=start_value,
        smooth=True,
        convex=convex,
        inequalities=inequalities,
        equalities=equalities,
        source=f"Hock-Schittkowski {number}, from memory; SLSQP gives the collection's optimum",
    )


def hs6(x: Tensor) -> Values:
    return (1 - x[0]) ** 2, None, (10 * (x[1] - x[0] ** 2)).reshape(1)


def hs7(x: Tensor) -> Values:
    return torch.log(1 + x[0] ** 2) - x[1], None, ((1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4).reshape(1)


def hs10(x: Tensor) -> Values:
    return x[0] - x[1], (3 * x[0] ** 2 - 2 * x[0] * x[1] + x[1] ** 2 - 1).reshape(1), None


def hs12(x: Tensor) -> Values:
    value = 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1]
    return value, (4 * x[0] ** 2 + x[1] ** 2 - 25).reshape(1), None


def hs14(x: Tensor) -> Values:
    value = (x[0] - 2) ** 2 + (x[1] - 1) ** 2
    return value, (0.25 * x[0] ** 2 + x[1] ** 2 - 1).reshape(1), (x[0] - 2 * x[1] + 1).reshape(1)


def hs39(x: Tensor) -> Values:
    return -x[0], None, torch.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2])


def hs43(x: Tensor) -> Values:
    return *rosen_suzuki_terms(x), None


def hs71(x: Tensor) -> Values:
    value = x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
    inequality = torch.cat([(25 - x[0] * x[1] * x[2] * x[3]).reshape(1), bounds(x, (1.0,) * 4, (5.0,) * 4)])
    return value, inequality, ((x**2).sum() - 40).reshape(1)


def hs77(x: Tensor) -> Values:
    value = (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6
    first = x[0] ** 2 * x[3] + torch.sin(x[3] - x[4]) - 2 * math.sqrt(2)
    return value, None, torch.stack([first, x[1] + x[2] ** 4 * x[3] ** 2 - 8 - math.sqrt(2)])


def product_equalities(x: Tensor) -> Tensor:
    """The three equalities that HS78, HS80 and HS81 share."""
    return torch.stack([(x**2).sum() - 10, x[1] * x[2] - 5 * x[3] * x[4], x[0] ** 3 + x[1] ** 3 + 1])


def hs78(x: Tensor) -> Values:
    return x[0] * x[1] * x[2] * x[3] * x[4], None, product_equalities(x)


def wong1_terms(x: Tensor) -> tuple[Tensor, Tensor]:
    """Objective and the four constraints (<= 0) of HS100."""
    value = (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2
    value = value + 10 * x[4] ** 6 + 7 * x[5] ** 2 + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6]
    constraints = [
        2 * x[0] ** 2 + 3 * x[1] ** 4 + x[2] + 4 * x[3] ** 2 + 5 * x[4] - 127,
        7 * x[0] + 3 * x[1] + 10 * x[2] ** 2 + x[3] - x[4] - 282,
        23 * x[0] + x[1] ** 2 + 6 * x[5] ** 2 - 8 * x[6] - 196,
        4 * x[0] ** 2 + x[1] ** 2 - 3 * x[0] * x[1] + 2 * x[2] ** 2 + 5 * x[5] - 11 * x[6],
    ]
    return value, torch.stack(constraints)


def hs100(x: Tensor) -> Values:
    return *wong1_terms(x), None


def wong2_terms(x: Tensor) -> tuple[Tensor, Tensor]:
    """Objective and the eight constraints (<= 0) of HS113."""
    value = x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 14 * x[0] - 16 * x[1] + (x[2] - 10) ** 2 + 4 * (x[3] - 5) ** 2
    value = value + (x[4] - 3) ** 2 + 2 * (x[5] - 1) ** 2 + 5 * x[6] ** 2 + 7 * (x[7] - 11) ** 2
    value = value + 2 * (x[8] - 10) ** 2 + (x[9] - 7) ** 2 + 45
    constraints = [
        3 * (x[0] - 2) ** 2 + 4 * (x[1] - 3) ** 2 + 2 * x[2] ** 2 - 7 * x[3] - 120,
        5 * x[0] ** 2 + 8 * x[1] + (x[2] - 6) ** 2 - 2 * x[3] - 40,
        0.5 * (x[0] - 8) ** 2 + 2 * (x[1] - 4) ** 2 + 3 * x[4] ** 2 - x[5] - 30,
        x[0] ** 2 + 2 * (x[1] - 2) ** 2 - 2 * x[0] * x[1] + 14 * x[4] - 6 * x[5],
        4 * x[0] + 5 * x[1] - 3 * x[6] + 9 * x[7] - 105,
        10 * x[0] - 8 * x[1] - 17 * x[6] + 2 * x[7],
        -3 * x[0] + 6 * x[1] + 12 * (x[8] - 8) ** 2 - 7 * x[9],
        -8 * x[0] + 2 * x[1] + 5 * x[8] - 2 * x[9] - 12,
    ]
    return value, torch.stack(constraints)


def hs113(x: Tensor) -> Values:
    return *wong2_terms(x), None


WONG1_START = (1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0)
WONG2_START = (2.0, 3.0, 5.0, 5.0, 1.0, 2.0, 7.0, 3.0, 6.0, 10.0)

HOCK_SCHITTKOWSKI = catalog(
    hock_schittkowski(6, hs6, (-1.2, 1.0), 0.0, (1.0, 1.0), start_value=4.84, equalities=1),
    hock_schittkowski(7, hs7, (2.0, 2.0), -math.sqrt(3), (0.0, math.sqrt(3)), start_value=math.log(5) - 2, equalities=1),
    hock_schittkowski(10, hs10, (-10.0, 10.0), -1.0, (0.0, 1.0), start_value=-20.0, inequalities=1, convex=True),
    hock_schittkowski(12, hs12, (0.0, 0.0), -30.0, (2.0, 3.0), start_value=0.0, inequalities=1, convex=True),
    hock_schittkowski(
        14,
        hs14,
        (2.0, 2.0),
        9 - 2.875 * math.sqrt(7),
        ((math.sqrt(7) - 1) / 2, (math.sqrt(7) + 1) / 4),
        start_value=1.0,
        inequalities=1,
        equalities=1,
        convex=True,
    ),
    hock_schittkowski(39, hs39, (2.0,) * 4, -1.0, (1.0, 1.0, 0.0, 0.0), start_value=-2.0, equalities=2),
    hock_schittkowski(43, hs43, (0.0,) * 4, -44.0, (0.0, 1.0, 2.0, -1.0), start_value=0.0, inequalities=3, convex=True),
    hock_schittkowski(71, hs71, (1.0, 5.0, 5.0, 1.0), *SOLVED["hs71"], start_value=16.0, inequalities=9, equalities=1),
    hock_schittkowski(77, hs77, (2.0,) * 5, *SOLVED["hs77"], start_value=4.0, equalities=2),
    hock_schittkowski(78, hs78, (-2.0, 1.5, 2.0, -1.0, -1.0), *SOLVED["hs78"], start_value=-6.0, equalities=3),
    hock_schittkowski(100, hs100, WONG1_START, *SOLVED["hs100"], start_value=714.0, inequalities=4),
    hock_schittkowski(113, hs113, WONG2_START, *SOLVED["hs113"], start_value=753.0, inequalities=8, convex=True),
)
