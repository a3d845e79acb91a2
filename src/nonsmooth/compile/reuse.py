"""Reuse of compiled functions in later runs of the same functions within the process.

They are stored as an attribute of the user's function, and freed with it. A change in what the function reads is detected at
every call anyway.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from nonsmooth.compile.compiled import Compiled

if TYPE_CHECKING:
    from nonsmooth.evaluate.evaluator import Evaluator

NAME = "_nonsmooth_compiled"


@dataclass(frozen=True)
class _Entry:
    functions: tuple[Any, ...]
    layout: tuple[Any, ...]
    forms: Any
    thread: int
    """Compiled functions write the point to their own buffer, so runs in other threads need others."""
    compiled: Compiled

    def __reduce__(self) -> Any:
        """Pickle as None, so that a pickled function does not include it."""
        return type(None), ()


def remember(evaluator: Evaluator, compiled: Compiled) -> None:
    """Store compiled functions for the next run."""
    functions = _functions(evaluator)
    if functions and isinstance(functions[0], FunctionType) and evaluator.variables.module is None:
        entry = _Entry(functions, evaluator.variables.layout, evaluator.forms, threading.get_ident(), compiled)
        setattr(functions[0], NAME, entry)


def find(evaluator: Evaluator) -> Compiled | None:
    """The compiled functions from an earlier run of exactly these functions."""
    functions = _functions(evaluator)
    entry = vars(functions[0]).get(NAME) if functions and isinstance(functions[0], FunctionType) else None
    if not isinstance(entry, _Entry) or len(entry.functions) != len(functions):
        return None
    same = all(one is other for one, other in zip(entry.functions, functions, strict=True))
    fits = (entry.layout, entry.forms, entry.thread) == (evaluator.variables.layout, evaluator.forms, threading.get_ident())
    return entry.compiled if same and fits else None


def _functions(evaluator: Evaluator) -> tuple[Any, ...]:
    """The functions of a problem if they take no argument but x; otherwise nothing."""
    problem = evaluator.problem
    if problem.arguments or problem.keywords:
        return ()
    return (*problem.functions, *problem.terms)
