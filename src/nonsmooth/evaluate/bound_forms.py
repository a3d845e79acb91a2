"""The accepted forms of bounds: lower and upper, or a pair for every number as in SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nonsmooth.errors import ProblemError
from nonsmooth.variables import Variables

Vector = NDArray[np.float64]


def lower_and_upper(bounds: Any, variables: Variables) -> tuple[Any, Any]:
    """The lower and the upper bounds, each a number, None, or values in a form that `Variables.flatten` reads.

    Two rows of two numbers are ambiguous. They are rejected if both readings describe a box and the boxes differ.

    >>> import torch
    >>> three, two = Variables(torch.zeros(3)), Variables(torch.zeros(2))
    >>> lower_and_upper([(0.0, 1.0), (None, 2.0), (-1.0, None)], three)
    (array([  0., -inf,  -1.]), array([ 1.,  2., inf]))
    >>> lower_and_upper((-1.0, None), three)
    (-1.0, None)
    >>> lower_and_upper([(0.0, 5.0), (1.0, 2.0)], two)  # as lower and upper bounds, 5 would be above 2
    (array([0., 1.]), array([5., 2.]))
    """
    if isinstance(bounds, np.ndarray | Tensor):
        bounds = bounds.tolist()
    if not isinstance(bounds, list | tuple):
        raise ProblemError(f"bounds must be a pair (lower, upper), or a pair (low, high) for every number, not {bounds!r:.200}")
    pairs = _pairs(bounds) if len(bounds) == variables.size else None
    if pairs is None:
        if len(bounds) != 2:
            raise ProblemError(
                f"bounds must be a pair (lower, upper), or a pair (low, high) for each of the {variables.size} numbers of x0, "
                f"not a {type(bounds).__name__} of {len(bounds)}; use None for a side without a bound"
            )
        return bounds[0], bounds[1]
    sides = _sides(bounds) if len(bounds) == 2 else None
    if sides is None or all(map(np.array_equal, sides, pairs)) or not _is_box(sides):
        return pairs
    if not _is_box(pairs):
        return sides
    one, other = (", ".join(str(part.tolist()) for part in reading) for reading in (sides, pairs))
    raise ProblemError(
        f"bounds={bounds!r:.200} can mean lower and upper bounds, or a pair (low, high) for each of the two numbers of x0; "
        f"write scipy.optimize.Bounds({one}) for the first, scipy.optimize.Bounds({other}) for the second"
    )


def _pairs(bounds: list[Any] | tuple[Any, ...]) -> tuple[Vector, Vector] | None:
    """The bounds as a pair for every number; None if they have another form."""
    low, high = np.empty(len(bounds)), np.empty(len(bounds))
    for index, pair in enumerate(bounds):
        if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2 or not all(map(_is_side, pair)):
            return None
        low[index] = -np.inf if pair[0] is None else pair[0]
        high[index] = np.inf if pair[1] is None else pair[1]
    return low, high


def _is_side(value: Any) -> bool:
    return value is None or isinstance(value, int | float | np.number) or (isinstance(value, Tensor) and value.dim() == 0)


def _sides(bounds: list[Any] | tuple[Any, ...]) -> tuple[Vector, Vector] | None:
    """Two rows of two numbers as lower and upper bounds; None if a number is missing."""
    if any(side is None for row in bounds for side in row):
        return None
    return np.array([float(side) for side in bounds[0]]), np.array([float(side) for side in bounds[1]])


def _is_box(reading: tuple[Vector, Vector]) -> bool:
    return bool((reading[0] <= reading[1]).all())
