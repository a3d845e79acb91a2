"""Whether a variant is right: values, gradients and effects against eager and a float64 reference, and what is to blame."""

from compile_inspect.agreement.comparison import Comparison, compare
from compile_inspect.agreement.reference import Reference, make_reference
from compile_inspect.agreement.verifying import verify

__all__ = ["Comparison", "Reference", "compare", "make_reference", "verify"]
