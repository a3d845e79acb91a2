"""What can be seen of the kinks of a problem at one point: those of f, and those of its constraints among bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.bounds import Bounds
from nonsmooth.structure import Arguments, ConstraintReading, Reading, read, read_constraints
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]


def read_problem(f: Tensor, c: Tensor | None, leaves: Sequence[Tensor], variables: Variables, arguments: Arguments) -> Reading:
    """Read the kinks of f and, where those can be seen, those of the constraints."""
    reading = read(f, leaves, variables, arguments)
    _ = reading.terms.rows  # as long as the graph is whole, and a module holds this point
    if reading.hidden or c is None or not c.requires_grad:
        return reading
    constraints = read_constraints(c, leaves, variables, arguments)
    if isinstance(constraints, str):
        return replace(reading, unread=constraints)
    if constraints is not None:
        _ = constraints.terms.rows
    return replace(reading, constraints=constraints)


def among_bounds(reading: Reading, bounds: Bounds, x: Vector, equalities: int) -> Reading:
    """The same where bounds are constraints like others: after equalities those of fixed variables, the others at the end."""
    constraints = reading.constraints
    if constraints is None or not bounds.any:
        return reading
    own = np.arange(len(constraints.values))
    places = np.where(own < equalities, own, own + len(bounds.fixed))

    def merged(parts: Vector, fixed: Vector, sides: Vector) -> Vector:
        return np.concatenate([parts[:equalities], fixed, parts[equalities:], sides])

    values = merged(constraints.values, bounds.equalities(x), bounds.inequalities(x))
    jacobian = merged(constraints.jacobian, bounds.equality_rows(), bounds.inequality_rows())
    placed: ConstraintReading = constraints.among(places, values, jacobian)
    return replace(reading, constraints=placed)
