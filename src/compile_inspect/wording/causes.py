"""Why a frame was recompiled, in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compile_inspect.records import GuardFailure, LimitHit, Recompile
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.locations import place
from compile_inspect.wording.plain import one_line

FunctionKey = tuple[str, str, int]

_VALUES = re.compile(r"[.,;:]? ?\bexpected [^\n]*$")


def change(failure: GuardFailure) -> str:
    """The expected and actual value of a guard, or torch's own words.

    >>> change(GuardFailure("0/0", "x", "size mismatch", expected="4", actual="8"))
    '4 -> 8'
    """
    if failure.expected is None and failure.actual is None:
        return one_line(failure.reason) or "no reason was given"
    expected = "?" if failure.expected is None else one_line(failure.expected)
    actual = "?" if failure.actual is None else one_line(failure.actual)
    return f"{expected} -> {actual}"


def short_reason(failure: GuardFailure) -> str:
    """Torch's words without the two values, if these are recorded separately.

    >>> short_reason(GuardFailure("0/0", "x", "size mismatch at index 0. expected 4, actual 8", "4", "8"))
    'size mismatch at index 0'
    """
    reason = one_line(failure.reason)
    if failure.expected is None or failure.actual is None:
        return reason
    return _VALUES.sub("", reason) or reason


def cause(failure: GuardFailure | None) -> str:
    """The variable and its change, or that torch gave no reason."""
    if failure is None:
        return "torch gave no reason"
    variable = one_line(failure.variable)
    return f"{variable}: {change(failure)}" if variable else change(failure)


def by_function(recompiles: Iterable[Recompile]) -> dict[FunctionKey, list[Recompile]]:
    """Recompiles of each function, in chronological order."""
    groups: dict[FunctionKey, list[Recompile]] = {}
    for recompile in recompiles:
        groups.setdefault((recompile.function, recompile.file, recompile.line), []).append(recompile)
    return groups


def limit_sentence(limit: LimitHit) -> str:
    """The effect of a limit on a function.

    >>> limit_sentence(LimitHit("0/8", "step", "train.py", 3, "recompile_limit", 8)).partition(":")[2]
    '3) reached recompile_limit = 8: torch compiles no further version of it, and calls that match none run in eager mode.'
    """
    value = f" = {limit.value:,}" if limit.value is not None else ""
    what = f"{function_name(limit.function)} ({place(limit.file, limit.line)}) reached {one_line(limit.limit)}{value}"
    last = f" Last reason: {one_line(limit.last_reason)}" if limit.last_reason else ""
    return f"{what}: torch compiles no further version of it, and calls that match none run in eager mode.{last}"
