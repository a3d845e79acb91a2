"""Quasi-Newton approximations of the inverse Hessian of the Lagrangian."""

from nonsmooth.hessian.bfgs import FullMemory
from nonsmooth.hessian.form import Form
from nonsmooth.hessian.lbfgs import LimitedMemory
from nonsmooth.hessian.update import Curvature, InverseHessian, Outcome, curvature_pair, limit_growth

__all__ = ["Curvature", "Form", "FullMemory", "InverseHessian", "LimitedMemory", "Outcome", "curvature_pair", "limit_growth"]
