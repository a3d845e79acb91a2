"""Symbolic sizes that were specialized to a number, and the lines that specialized them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from compile_inspect.assemble.names import readable_name
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Specialization

_REASONS = {"range_refined_to_singleton": "a condition leaves only this value", "find": "it must equal this number"}


def assemble_specializations(events: Iterable[Event], stacks: StackTable) -> list[Specialization]:
    """All specializations, each once per frame."""
    specializations: dict[tuple[str | None, str], Specialization] = {}
    for event in events:
        if event["event"] != "symbolic_shape_specialization":
            continue
        facts, number = event["facts"], stacks.number(event.get("stack"))
        reason = facts.get("reason", "")
        variable = ", ".join(map(readable_name, _sources(facts.get("sources", "")))) or facts.get("symbol", "")
        specializations.setdefault(
            (event["compilation"], variable),
            Specialization(
                compilation=event["compilation"],
                variable=variable,
                value=facts.get("value", ""),
                reason=_REASONS.get(reason, reason),
                location=stacks.user_line(number) if number is not None else None,
                stack=number,
            ),
        )
    return list(specializations.values())


def _sources(text: str) -> list[str]:
    """The names of a size; torch writes them as a list.

    >>> _sources("['n', 'm']"), _sources("L[x].size()")
    (['n', 'm'], ['L[x].size()'])
    """
    try:
        parsed = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return [text] if text else []
    return [str(item) for item in parsed] if isinstance(parsed, list) else [str(parsed)]
