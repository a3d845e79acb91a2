"""What a solver must survive: problems without a solution, without a gradient, without regularity.

What is expected is a status. Where it is None, any status will do that does not claim more than is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .case import Case, Values, largest, unconstrained
from .constrained import nonsmooth_rosenbrock
from .solutions import SOLVED
from .unconstrained import cb2_pieces, rosen_suzuki_terms, wolfe

Status = Literal["STATIONARY", "INFEASIBLE", "UNBOUNDED"]


@dataclass(frozen=True)
class NegativeCase(Case):
    """A case with the status a solver is to end with."""

    expected: Status | None = None


def half_square(x: Tensor) -> Tensor:
    return 0.5 * (x**2).sum()


def infeasible(x: Tensor) -> Values:
    return half_square(x), torch.stack([1 - x[0], x[0]]), None


def infeasible_equalities(x: Tensor) -> Values:
    return half_square(x), None, torch.stack([x[0] + x[1] - 1, x[0] + x[1] - 2])


def infeasible_nonsmooth(x: Tensor) -> Values:
    return x.sum(), (x.abs().sum() + 1).reshape(1), None


def unbounded(x: Tensor) -> Values:
    return -x[0], -x[1:], None


def unbounded_nonsmooth(x: Tensor) -> Values:
    return x[1].abs() - x[0].abs(), None, None


def feasibility(x: Tensor) -> Values:
    limits = [(x[1] + x[0] ** 2) ** 2 + 0.1 * x[1] ** 2 - 1, x[1] - torch.exp(-x[0]) - 3, x[1] - x[0] + 4]
    return 0 * x.sum(), torch.stack(limits), None


def logarithm(x: Tensor) -> Tensor:
    """NaN where the second entry is negative, infinite where it is 0."""
    return x[0] ** 2 + x[1] - torch.log(x[1])


def root_constraint(x: Tensor) -> Values:
    """The constraint is NaN where the first entry is negative; the objective is defined everywhere."""
    return (x[0] - 4) ** 2 + x[1].abs(), (torch.sqrt(x[0]) - 1).reshape(1), None


def cliff(x: Tensor) -> Tensor:
    """NaN to the left of the minimizer of what is defined, which is on the border of the domain."""
    return torch.sqrt(x[0]) + (x[1] - 1).abs()


def circle_from_center(x: Tensor) -> Values:
    return x.sum(), None, ((x**2).sum() - 1).reshape(1)


def outside_from_center(x: Tensor) -> Values:
    return (x[0] - 2) ** 2 + x[1] ** 2, (1 - (x**2).sum()).reshape(1), None


def all_gradients_zero(x: Tensor) -> Values:
    return half_square(x), None, ((x**2).sum() - 1).reshape(1)


def duplicated_smooth(x: Tensor) -> Values:
    value, constraints = rosen_suzuki_terms(x)
    return value, torch.cat([constraints, constraints, 3 * constraints]), None


def duplicated_nonsmooth(x: Tensor) -> Values:
    value, limits, _ = nonsmooth_rosenbrock(x)
    assert limits is not None
    return value, torch.cat([limits, limits, limits.max().reshape(1)]), None


def redundant_equalities(x: Tensor) -> Values:
    level = x[0] + 2 * x[1] + 3 * x[2] - 1
    return (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, None, torch.stack([level, level, -2 * level])


def equality_as_inequalities(x: Tensor) -> Values:
    level = x[0] + 2 * x[1] + 3 * x[2] - 1
    return (x[0] + x[1]).abs() + (x[1] + x[2]).abs(), torch.stack([level, -level]), None


def hs13(x: Tensor) -> Values:
    """No multipliers exist at the solution."""
    return (x[0] - 2) ** 2 + x[1] ** 2, torch.stack([x[1] - (1 - x[0]) ** 3, -x[0], -x[1]]), None


def unused(x: Tensor) -> Values:
    """x2 is only in the constraint, x3 nowhere."""
    return (x[0] - 1).abs(), (x[0] + x[1] ** 2).reshape(1), None


def unused_pieces(x: Tensor) -> Tensor:
    return cb2_pieces(x[:2])


def kink(x: Tensor) -> Tensor:
    """A kink in x1 that is right where the solution is; x2 has still to move."""
    return x[0].abs() + (x[1] - 1) ** 2


NO_SOLUTION = (
    NegativeCase("infeasible", infeasible, 2, (3.0, 3.0), inequalities=2, smooth=True, expected="INFEASIBLE"),
    NegativeCase(
        "infeasible_equalities", infeasible_equalities, 2, (3.0, 3.0), equalities=2, smooth=True, expected="INFEASIBLE"
    ),
    NegativeCase("infeasible_nonsmooth", infeasible_nonsmooth, 2, (3.0, -2.0), inequalities=1, expected="INFEASIBLE"),
    NegativeCase("unbounded", unbounded, 2, (1.0, 1.0), inequalities=1, smooth=True, expected="UNBOUNDED"),
    NegativeCase("unbounded_nonsmooth", unbounded_nonsmooth, 2, (1.0, 1.0), expected="UNBOUNDED"),
)

DOMAIN = (
    NegativeCase(
        "logarithm", unconstrained(logarithm), 2, (1.0, 5.0), 1.0, (0.0, 1.0), convex=True, smooth=True, expected="STATIONARY"
    ),
    NegativeCase(
        "logarithm_near_border", unconstrained(logarithm), 2, (1.0, 1e-3), 1.0, (0.0, 1.0), smooth=True, expected="STATIONARY"
    ),
    NegativeCase("root_constraint", root_constraint, 2, (0.25, 1.0), 9.0, (1.0, 0.0), inequalities=1, expected="STATIONARY"),
    NegativeCase("cliff", unconstrained(cliff), 2, (1.0, 0.0), 0.0, (0.0, 1.0), expected=None),
)

REGULARITY = (
    NegativeCase("feasibility", feasibility, 2, (0.0, 0.0), 0.0, inequalities=3, smooth=True, expected="STATIONARY"),
    NegativeCase("constant", unconstrained(lambda x: 0 * x.sum() + 3), 2, (1.0, 2.0), 3.0, smooth=True, expected="STATIONARY"),
    NegativeCase(
        "circle_from_center",
        circle_from_center,
        2,
        (0.0, 0.0),
        -math.sqrt(2),
        (-math.sqrt(0.5), -math.sqrt(0.5)),
        equalities=1,
        smooth=True,
        expected="STATIONARY",
    ),
    NegativeCase(
        "outside_from_center",
        outside_from_center,
        2,
        (0.0, 0.0),
        0.0,
        (2.0, 0.0),
        inequalities=1,
        smooth=True,
        expected="STATIONARY",
    ),
    NegativeCase("all_gradients_zero", all_gradients_zero, 2, (0.0, 0.0), 0.5, (1.0, 0.0), equalities=1, smooth=True),
    NegativeCase(
        "duplicated_smooth",
        duplicated_smooth,
        4,
        (0.0,) * 4,
        -44.0,
        (0.0, 1.0, 2.0, -1.0),
        inequalities=9,
        smooth=True,
        expected="STATIONARY",
    ),
    NegativeCase(
        "duplicated_nonsmooth",
        duplicated_nonsmooth,
        2,
        (1.0, 1.0),
        (1 - math.sqrt(0.5)) ** 2,
        (math.sqrt(0.5), 0.5),
        inequalities=5,
        expected="STATIONARY",
    ),
    NegativeCase(
        "redundant_equalities",
        redundant_equalities,
        3,
        (-4.0, 1.0, 1.0),
        0.0,
        (0.5, -0.5, 0.5),
        equalities=3,
        smooth=True,
        expected="STATIONARY",
    ),
    NegativeCase(
        "equality_as_inequalities",
        equality_as_inequalities,
        3,
        (-4.0, 1.0, 1.0),
        0.0,
        (0.5, -0.5, 0.5),
        inequalities=2,
        expected="STATIONARY",
    ),
    NegativeCase("hs13", hs13, 2, (-2.0, -2.0), 1.0, (1.0, 0.0), start_value=20.0, inequalities=3, smooth=True),
    NegativeCase("unused", unused, 3, (-2.0, 1.0, 5.0), 1.0, (0.0, 0.0, 5.0), inequalities=1, expected="STATIONARY"),
    NegativeCase("unused_last", largest(unused_pieces), 3, (1.0, -0.1, 5.0), SOLVED["cb2"][0], expected="STATIONARY"),
)

KINKS = (
    NegativeCase(
        "maxq_at_solution", unconstrained(lambda x: (x**2).max()), 20, (0.0,) * 20, 0.0, (0.0,) * 20, expected="STATIONARY"
    ),
    NegativeCase(
        "sum_of_absolutes_at_solution",
        unconstrained(lambda x: x.abs().sum()),
        3,
        (0.0,) * 3,
        0.0,
        (0.0,) * 3,
        expected="STATIONARY",
    ),
    NegativeCase(
        "rosenbrock_at_solution",
        nonsmooth_rosenbrock,
        2,
        (math.sqrt(0.5), 0.5),
        (1 - math.sqrt(0.5)) ** 2,
        (math.sqrt(0.5), 0.5),
        inequalities=2,
        expected="STATIONARY",
    ),
    NegativeCase("kink", unconstrained(kink), 2, (0.0, 0.0), 0.0, (0.0, 1.0), convex=True, expected="STATIONARY"),
    NegativeCase("wolfe_at_kink", unconstrained(wolfe), 2, (0.0, 0.0), -8.0, (-1.0, 0.0), convex=True, expected="STATIONARY"),
)

NEGATIVE: dict[str, NegativeCase] = {case.name: case for case in (*NO_SOLUTION, *DOMAIN, *REGULARITY, *KINKS)}
