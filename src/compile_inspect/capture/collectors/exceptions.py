"""Facts about an exception: its type, its message, its innermost cause, and the lines of the program."""

from __future__ import annotations

from traceback import extract_tb
from typing import Any

from compile_inspect.capture.collectors.base import Rows, rows_of_summary
from compile_inspect.records.locations import is_recorder_file, is_torch_file

MAX_CHARACTERS = 4000


def exception_facts(error: BaseException) -> dict[str, Any]:
    """Type, message and innermost cause of an exception, as fields of an event.

    >>> try:
    ...     try:
    ...         {}["size"]
    ...     except KeyError as inner:
    ...         raise RuntimeError("no layout") from inner
    ... except RuntimeError as error:
    ...     exception_facts(error)
    {'error': 'RuntimeError', 'message': 'no layout', 'cause': "KeyError: 'size'"}
    """
    innermost = exception_chain(error)[-1]
    cause = "" if innermost is error else f"{type(innermost).__name__}: {_first_line(innermost)}".removesuffix(": ")
    return {"error": type(error).__name__, "message": _text(error)[:MAX_CHARACTERS], "cause": cause}


def exception_chain(error: BaseException) -> list[BaseException]:
    """An exception, the exception it was raised from, and so on."""
    chain = [error]
    while True:
        last = chain[-1]
        # Torch stores a backend's exception in an attribute, and suppresses the context of its own exceptions.
        has_visible_context = not last.__suppress_context__ or type(last).__module__.startswith("torch.")
        inner = getattr(last, "inner_exception", None) or last.__cause__ or (last.__context__ if has_visible_context else None)
        if not isinstance(inner, BaseException) or any(inner is known for known in chain):
            return chain
        chain.append(inner)


def program_rows(error: BaseException) -> Rows:
    """The lines of the program that led to an exception: those that Dynamo traced, or those that ran."""
    traced = next(filter(None, (getattr(item, "real_stack", None) for item in exception_chain(error))), None)
    if traced is not None:
        return rows_of_summary(traced)
    for item in reversed(exception_chain(error)):
        rows = rows_of_summary(extract_tb(item.__traceback__))
        own = tuple(row for row in rows if not is_torch_file(row[0]) and not is_recorder_file(row[0]))
        if own:
            return own
    return ()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a user-defined exception may raise when it is printed
        return ""


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in _text(error).splitlines() if line.strip()), "")[:MAX_CHARACTERS]
