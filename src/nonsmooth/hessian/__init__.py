"""Quasi-Newton approximations of the inverse Hessian of the Lagrangian."""

from nonsmooth.hessian.bfgs import FullMemory
from nonsmooth.hessian.lbfgs import LimitedMemory
from nonsmooth.hessian.quadratic_form import QuadraticForm
from nonsmooth.hessian.update import CurvaturePair, InverseHessian, UpdateOutcome, curvature_pair, limit_growth

__all__ = [
    "CurvaturePair",
    "FullMemory",
    "InverseHessian",
    "LimitedMemory",
    "QuadraticForm",
    "UpdateOutcome",
    "curvature_pair",
    "limit_growth",
]
