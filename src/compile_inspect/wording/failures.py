"""What failed, in a few words and in a sentence."""

from __future__ import annotations

from compile_inspect.records import Failure, Inspection
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.locations import stack_at, where
from compile_inspect.wording.plain import one_line


def headline(failure: Failure, inspection: Inspection) -> str:
    """What failed, in a few words.

    >>> headline(Failure("KeyError", "'x'"), Inspection())
    'The run ended with an exception'
    """
    if failure.compilation is None:
        return "The run ended with an exception"
    compilation = inspection.compilation(failure.compilation)
    name = function_name(compilation.function) if compilation is not None else "a frame"
    return f"Compilation {one_line(failure.compilation)} of {name} failed"


def sentence(failure: Failure, inspection: Inspection) -> str:
    """What failed, why and where, in one sentence.

    >>> sentence(Failure("KeyError", "'x'"), Inspection())
    "The run ended with an exception: KeyError: 'x'."
    """
    stack = stack_at(inspection, failure.stack)
    line = None if stack is None else stack.own_line or stack.user_line
    place = "" if line is None else f" ({where(line)})"
    return f"{headline(failure, inspection)}: {one_line(failure.told).rstrip('.')}{place}."
