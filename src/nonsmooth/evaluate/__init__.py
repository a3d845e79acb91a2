"""Evaluation of the user's functions: values first, gradients only where they are needed."""

from nonsmooth.evaluate.evaluator import Evaluator
from nonsmooth.evaluate.skipped_errors import SkippedErrors
from nonsmooth.evaluate.trial import FunctionFailed, Trial

__all__ = ["Evaluator", "FunctionFailed", "SkippedErrors", "Trial"]
