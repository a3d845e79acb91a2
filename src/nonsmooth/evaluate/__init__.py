"""Evaluating the user's functions: values first, gradients only where they are needed."""

from nonsmooth.evaluate.evaluator import Evaluator
from nonsmooth.evaluate.tier import Compilation, Distrusted, Outcome, Tier
from nonsmooth.evaluate.trial import FunctionFailed, Trial

__all__ = ["Compilation", "Distrusted", "Evaluator", "FunctionFailed", "Outcome", "Tier", "Trial"]
