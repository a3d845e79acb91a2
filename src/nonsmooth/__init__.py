"""Minimize nonsmooth, nonconvex functions under nonsmooth constraints, in PyTorch.

    from nonsmooth import minimize

    result = minimize(lambda x: (abs(x).sum(), 1 - x[0], None), torch.zeros(3))

`minimize` returns a `Result`. Its `status` is a member of `Status`, and `result.check()` repeats the proof from x alone.
`Options` lists all options. `nonsmooth.pygranso` accepts PyGRANSO's calls unchanged.
"""

from nonsmooth.errors import NonsmoothError, OptionError, ProblemError, QPError, StateError
from nonsmooth.loop.state import State
from nonsmooth.minimize import minimize
from nonsmooth.options import Options
from nonsmooth.problem import Problem
from nonsmooth.result import Certificate, Result, Status
from nonsmooth.structure import KinkSource, Structure

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "KinkSource",
    "NonsmoothError",
    "OptionError",
    "Options",
    "Problem",
    "ProblemError",
    "QPError",
    "Result",
    "State",
    "StateError",
    "Status",
    "Structure",
    "__version__",
    "minimize",
]


def __dir__() -> list[str]:
    return sorted(__all__)
