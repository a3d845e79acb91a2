"""Programs with balls as the solver asks for them: within the time that a run has, and marked where the answer is doubtful."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from nonsmooth.arrays.ball_program import BallProgram, least_in_balls
from nonsmooth.qp.active import OutOfTime
from nonsmooth.qp.program import Solution

ENOUGH = 1e-6
"""The part of the value that the gap of a trusted answer is at most."""


def solve_with_balls(program: BallProgram, deadline: float = np.inf) -> Solution:
    """The answer, which is marked as not trusted where its gap is not small; raises `OutOfTime` at the deadline."""

    def watch() -> None:
        if deadline < np.inf and perf_counter() > deadline:
            raise OutOfTime

    y = least_in_balls(program, watch)
    gap = program.gap(y)
    return Solution(y, max(gap, 0.0), trusted=gap <= ENOUGH)
