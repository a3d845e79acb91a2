"""The small convex quadratic programs behind every search direction."""

from nonsmooth.qp.active import OutOfTime
from nonsmooth.qp.product import Product
from nonsmooth.qp.program import Program, Solution
from nonsmooth.qp.solver import LARGE, Counts, QPSolver, Session, available

__all__ = ["LARGE", "Counts", "OutOfTime", "Product", "Program", "QPSolver", "Session", "Solution", "available"]
