"""The fastest version of a function that agrees with eager, and the evidence for it."""

from compile_inspect.tuning.tune import tune
from compile_inspect.tuning.tuned import Tuned

__all__ = ["Tuned", "tune"]
