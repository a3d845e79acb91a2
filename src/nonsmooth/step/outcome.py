"""What became of a step that was tried."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.step.model import Step

Vector = NDArray[np.float64]


class Direction(IntEnum):
    """Kinds of directions, in the order in which they are tried; histories and options hold these numbers."""

    MODEL = 0
    """From the local model with the quasi-Newton matrix."""
    IDENTITY = 1
    """From the local model with the identity."""
    QUASI_NEWTON = 2
    """Of the penalty function, without its constraints."""
    STEEPEST_DESCENT = 3
    RANDOM = 4


class StepFailure(Enum):
    """Why an iteration did not move."""

    NO_DECREASE = "the model predicts no decrease"
    SEARCH_FAILED = "the line search failed"
    NOT_TRIED = "the options ask for another kind of direction"
    UNBOUNDED = "the objective falls without end along a feasible ray"


class AcceptedStep(NamedTuple):
    """A step that was taken."""

    trial: Trial
    step: Step
    length: float
    """t: the step was t times the direction."""
    hessian_step: Vector | None
    """B·s where it is known."""
    direction: Direction = Direction.MODEL
    null_steps: int = 0
    met_kink: bool = False
    """Whether a null step gathered a gradient that was not just another piece of a constraint."""


class Evidence(Enum):
    """What a step that failed has shown."""

    KINK = "a gradient: x is near a kink, and all gradients that are kept are used from now on"
    PIECE = "a piece of a constraint that has kinks; the objective may be smooth"
