"""Reads the kinks of a problem at one point: those of f and of its constraints, including bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.evaluate.bounds import Bounds
from nonsmooth.problem import flatten
from nonsmooth.structure import Arguments, ConstraintReading, Reading, read, read_constraints
from nonsmooth.structure.kink_reading import UNWATCHED
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]


def read_problem(f: Tensor, c: Tensor | None, leaves: Sequence[Tensor], variables: Variables, arguments: Arguments) -> Reading:
    """Read the kinks of f and, where visible, those of the constraints."""
    reading = read(f, leaves, variables, arguments)
    _ = reading.terms.rows  # computed now, while the graph exists and a module is at this point
    if reading.hidden or c is None or not c.requires_grad:
        return reading
    if arguments.term_nodes is not None and not arguments.was_entered:
        return replace(reading, unread=UNWATCHED)
    constraints = read_constraints(c, leaves, variables, arguments)
    if isinstance(constraints, str):
        return replace(reading, unread=constraints)
    if constraints is not None:
        _ = constraints.terms.rows
    return replace(reading, constraints=constraints)


def concatenate_constraints(equalities: Any, inequalities: Any) -> Tensor | None:
    """The constraints that a function returned as one tensor, equalities first; None if there are none."""
    blocks = [flatten(equalities, "the equalities")[0], flatten(inequalities, "the inequalities")[0]]
    parts = [block.reshape(-1) for block in blocks if block is not None]
    return torch.cat(parts) if parts else None


def insert_bounds(reading: Reading, bounds: Bounds, x: Vector, equalities: int) -> Reading:
    """The reading with bounds inserted as constraints: those of fixed variables after the equalities, the others at the end."""
    constraints = reading.constraints
    if constraints is None or not bounds.any:
        return reading
    own = np.arange(len(constraints.values))
    places = np.where(own < equalities, own, own + len(bounds.fixed))

    def merge(parts: Vector, fixed: Vector, sides: Vector) -> Vector:
        return np.concatenate([parts[:equalities], fixed, parts[equalities:], sides])

    values = merge(constraints.values, bounds.equalities(x), bounds.inequalities(x))
    jacobian = merge(constraints.jacobian, bounds.equality_rows(), bounds.inequality_rows())
    with_bounds: ConstraintReading = constraints.extended_to(places, values, jacobian)
    return replace(reading, constraints=with_bounds)
