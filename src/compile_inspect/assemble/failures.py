"""Exceptions that ended a compilation, or the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Compilation, CompilationOutcome, Failure


def assemble_failures(events: Iterable[Event], by_id: Mapping[str, Compilation], stacks: StackTable) -> Iterator[Failure]:
    """Failed compilations, then the uncaught exception; frames that fell back to eager mode are not failures."""
    failures: dict[str | None, Failure] = {}
    for event in events:
        identifier = event.get("compilation")
        compilation = None if identifier is None else by_id.get(identifier)
        if identifier is not None and (compilation is None or compilation.outcome is not CompilationOutcome.FAILED):
            continue
        stack = stacks.add_rows(event["rows"]) if "rows" in event else stacks.number(event.get("stack"))
        if compilation is not None:
            stack = compilation.call_stack if stack is None else stacks.with_call(stack, compilation.call_stack)
        # Dynamo may restart a compilation after a failure: the last failure ended it.
        failures[identifier] = Failure(
            str(event["error"]), str(event["message"]), str(event["cause"]), compilation=identifier, stack=stack
        )
    for identifier, compilation in by_id.items():
        if compilation.outcome is CompilationOutcome.FAILED and identifier not in failures:
            error, _, message = (compilation.failure or "").partition(": ")
            failures[identifier] = Failure(error, message, compilation=identifier, stack=compilation.call_stack)
    yield from (failure for identifier, failure in failures.items() if identifier is not None)
    if None in failures:
        yield failures[None]
