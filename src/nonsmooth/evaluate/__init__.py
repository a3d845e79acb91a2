"""Evaluating the user's functions: values first, gradients only where they are needed."""

from nonsmooth.evaluate.compilation import Compilation, Outcome
from nonsmooth.evaluate.evaluator import Evaluator
from nonsmooth.evaluate.skipping import SkippedErrors
from nonsmooth.evaluate.tier import Distrusted, Tier
from nonsmooth.evaluate.trial import FunctionFailed, Trial

__all__ = ["Compilation", "Distrusted", "Evaluator", "FunctionFailed", "Outcome", "SkippedErrors", "Tier", "Trial"]
