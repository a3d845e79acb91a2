"""Solvers for the small convex quadratic programs that define search directions."""

from nonsmooth.arrays.ball_program import BallProgram
from nonsmooth.arrays.interior_point import NO_BALL
from nonsmooth.qp.active_set import OutOfTime
from nonsmooth.qp.balls import solve_with_balls
from nonsmooth.qp.product import Product
from nonsmooth.qp.program import Program, Solution
from nonsmooth.qp.solver import MIN_WARM_START_ENTRIES, Counts, QPSolver, Session, available

__all__ = [
    "MIN_WARM_START_ENTRIES",
    "NO_BALL",
    "BallProgram",
    "Counts",
    "OutOfTime",
    "Product",
    "Program",
    "QPSolver",
    "Session",
    "Solution",
    "available",
    "solve_with_balls",
]
