"""The length of a vector."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def norm(vector: NDArray[np.float64]) -> float:
    """The same number as `numpy.linalg.norm`, several times sooner where the vector is short.

    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    return math.sqrt(vector.dot(vector))
