"""Compiled functions in a run: when they are built, when they take over, and how they are checked."""

from nonsmooth.compile.outcome import Compilation, CompileOutcome
from nonsmooth.compile.tier import CompiledMismatch, Tier

__all__ = ["Compilation", "CompileOutcome", "CompiledMismatch", "Tier"]
