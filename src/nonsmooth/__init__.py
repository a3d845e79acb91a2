"""Minimise nonsmooth, nonconvex functions under nonsmooth constraints, in PyTorch.

The solver itself is not here yet; this package holds its name and its version.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
