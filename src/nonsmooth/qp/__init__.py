"""The small convex quadratic programs behind every search direction."""

from nonsmooth.arrays.ball_program import BallProgram
from nonsmooth.arrays.interior_point import NO_BALL
from nonsmooth.qp.active import OutOfTime
from nonsmooth.qp.balls import solve_with_balls
from nonsmooth.qp.product import Product
from nonsmooth.qp.program import Program, Solution
from nonsmooth.qp.solver import LARGE, Counts, QPSolver, Session, available

__all__ = [
    "LARGE",
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
