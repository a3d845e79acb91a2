"""The outcome of a step: accepted, failed, or a null step."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nonsmooth.evaluate import Trial
from nonsmooth.step.model import Step

Vector = NDArray[np.float64]


class Direction(IntEnum):
    """Kinds of directions, in the order in which they are tried; histories and options store these numbers."""

    MODEL = 0
    """From the local model with the quasi-Newton matrix."""
    IDENTITY = 1
    """From the local model with the identity as Hessian."""
    QUASI_NEWTON = 2
    """The quasi-Newton direction of the penalty function, without linearized constraints."""
    STEEPEST_DESCENT = 3
    RANDOM = 4


class StepFailure(Enum):
    """Why a step failed."""

    NO_DECREASE = "the model predicts no decrease"
    SEARCH_FAILED = "the line search failed"
    NOT_TRIED = "the options select another kind of direction"
    UNBOUNDED = "the objective decreases without bound along a feasible ray"


class AcceptedStep(NamedTuple):
    """A step that was accepted."""

    trial: Trial
    step: Step
    length: float
    """t: the step is t times the direction."""
    hessian_step: Vector | None
    """B·s, if known."""
    direction: Direction = Direction.MODEL
    null_steps: int = 0
    met_kink: bool = False
    """Whether a null step added a cut other than a piece of a constraint with known kinks."""


class CutKind(Enum):
    """The kind of cut that a null step added."""

    KINK = "a gradient beyond a kink near x; the model uses all stored gradients from now on"
    PIECE = "a piece of a constraint that has kinks; the objective may be smooth"
