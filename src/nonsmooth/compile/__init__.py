"""Compiled functions in a run: when to build them, when to switch to them, and how to check them."""

from nonsmooth.compile.outcome import Compilation, CompileOutcome
from nonsmooth.compile.tier import CompiledMismatch, Tier

__all__ = ["Compilation", "CompileOutcome", "CompiledMismatch", "Tier"]
