"""The Euclidean norm of a vector."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def norm(vector: NDArray[np.float64]) -> float:
    """Like `numpy.linalg.norm`, but several times faster for short vectors.

    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    return math.sqrt(vector.dot(vector))
