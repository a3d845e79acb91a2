"""The native part of the solver: C sources, the library built from them, and the only module that loads it.

The Python code is the specification of everything here: `qp.active_set` for the active-set method, `step.model` for models and
their steps, `kinks.linearizations` for linearization errors.
"""

from nonsmooth.native.library import Functions, Method, address, linear_algebra, load

__all__ = ["Functions", "Method", "address", "linear_algebra", "load"]
