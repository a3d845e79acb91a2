"""The compiled part of the solver: C sources, the library built from them, and the only module that loads it.

Everything here exists in Python as well, which is the specification: `qp.active` for the active-set method, `model` for models
and their steps, `linearizations` for errors of linear functions.
"""

from nonsmooth.native.library import Functions, Method, address, linear_algebra, load

__all__ = ["Functions", "Method", "address", "linear_algebra", "load"]
