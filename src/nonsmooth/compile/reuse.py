"""Compiled functions of an earlier run, for runs of the same functions that follow it.

They are entry as an attribute of the user's function and go when it goes. Whether what the function reads has changed is
checked at every call anyway.
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
    """Compiled functions write the point to memory of their own: runs in other threads need others."""
    compiled: Compiled

    def __reduce__(self) -> Any:
        """Nothing of it leaves the process with a function that is pickled."""
        return type(None), ()


def remember(evaluator: Evaluator, compiled: Compiled) -> None:
    """Keep compiled functions for the next run."""
    functions = _functions(evaluator)
    if functions and isinstance(functions[0], FunctionType) and evaluator.variables.module is None:
        entry = _Entry(functions, evaluator.variables.layout, evaluator.forms, threading.get_ident(), compiled)
        setattr(functions[0], NAME, entry)


def find(evaluator: Evaluator) -> Compiled | None:
    """What an earlier run of exactly these functions has left."""
    functions = _functions(evaluator)
    entry = vars(functions[0]).get(NAME) if functions and isinstance(functions[0], FunctionType) else None
    if not isinstance(entry, _Entry) or len(entry.functions) != len(functions):
        return None
    same = all(one is other for one, other in zip(entry.functions, functions, strict=True))
    known = (entry.layout, entry.forms, entry.thread) == (evaluator.variables.layout, evaluator.forms, threading.get_ident())
    return entry.compiled if same and known else None


def _functions(evaluator: Evaluator) -> tuple[Any, ...]:
    """The functions of a problem, where they are given nothing but x."""
    problem = evaluator.problem
    if problem.arguments or problem.keywords:
        return ()
    return (*problem.functions, *problem.terms)
