"""Solve programs with balls within a run's time limit, and mark inaccurate solutions."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from nonsmooth.arrays.ball_program import BallProgram, solve_ball_program
from nonsmooth.qp.active_set import OutOfTime
from nonsmooth.qp.program import Solution

MAX_RELATIVE_GAP = 1e-6
"""The largest relative gap of a trusted solution."""


def solve_with_balls(program: BallProgram, deadline: float = np.inf) -> Solution:
    """The solution, marked as not trusted if its gap is not small; raises `OutOfTime` at the deadline."""

    def watch() -> None:
        if deadline < np.inf and perf_counter() > deadline:
            raise OutOfTime

    y = solve_ball_program(program, watch)
    gap = program.gap(y)
    return Solution(y, max(gap, 0.0), trusted=gap <= MAX_RELATIVE_GAP)
