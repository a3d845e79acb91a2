"""Optimization problems with known answers, for the tests and benchmarks of `nonsmooth`.

Tests import them with `from problems import ALL`: pytest puts the tests folder on the path. A script elsewhere does
that itself: `sys.path.insert(0, str(root / "tests"))`.
"""

from __future__ import annotations

from .case import Case, Constant, Function, Values, lifted
from .cases import ALL, CONSTRAINED, FAMILIES, SMOOTH, UNCONSTRAINED, build
from .negative import NEGATIVE, NegativeCase
from .published import Published
from .published_networks import PUBLISHED

__all__ = [
    "ALL",
    "CONSTRAINED",
    "FAMILIES",
    "NEGATIVE",
    "PUBLISHED",
    "SMOOTH",
    "UNCONSTRAINED",
    "Case",
    "Constant",
    "Function",
    "NegativeCase",
    "Published",
    "Values",
    "build",
    "lifted",
]
