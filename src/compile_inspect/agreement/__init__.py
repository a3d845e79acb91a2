"""Check whether a variant is right: values, gradients and effects against eager and a float64 reference, and find the cause."""

from compile_inspect.agreement.api import verify
from compile_inspect.agreement.comparison import Comparison, compare
from compile_inspect.agreement.reference import Reference, make_reference

__all__ = ["Comparison", "Reference", "compare", "make_reference", "verify"]
