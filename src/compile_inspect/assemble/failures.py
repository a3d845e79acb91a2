"""Exceptions that ended a compilation, or the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Compilation, CompilationOutcome, Failure


def assemble_failures(events: Iterable[Event], by_id: Mapping[str, Compilation], stacks: StackTable) -> Iterator[Failure]:
    """Failed compilations first, then what left the program; frames that went back to eager mode have not failed."""
    found: dict[str | None, Failure] = {}
    for event in events:
        identifier = event.get("compilation")
        compilation = None if identifier is None else by_id.get(identifier)
        if identifier is not None and (compilation is None or compilation.outcome is not CompilationOutcome.FAILED):
            continue
        stack = stacks.add_rows(event["rows"]) if "rows" in event else stacks.number(event.get("stack"))
        if compilation is not None:
            stack = compilation.call_stack if stack is None else stacks.placed(stack, compilation.call_stack)
        # Dynamo may start a compilation again after a failure: the last one ended it.
        found[identifier] = Failure(
            str(event["error"]), str(event["message"]), str(event["cause"]), compilation=identifier, stack=stack
        )
    for identifier, compilation in by_id.items():
        if compilation.outcome is CompilationOutcome.FAILED and identifier not in found:
            error, _, message = (compilation.failure or "").partition(": ")
            found[identifier] = Failure(error, message, compilation=identifier, stack=compilation.call_stack)
    yield from (failure for identifier, failure in found.items() if identifier is not None)
    if None in found:
        yield found[None]
