"""A generated function that checks the guard and calls the compiled code, with nothing unnecessary in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.captured_program import CapturedProgram, FlatFunction
from compile_inspect.variants.cuda_graph import ReplayedFunction
from compile_inspect.variants.guard import Guard

SlowPath = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]

_MISMATCH_EXCEPTIONS = "(KeyError, IndexError, TypeError, AttributeError, ValueError, RuntimeError)"
"""Exceptions that unpacking raises for inputs that differ in structure from the example."""


@dataclass(frozen=True)
class Body:
    """The code to run for a call that the guard accepts.

    `lines` return the result. The lines of `preamble` run before the guard is checked, and what they compute is used only if
    the guard holds.
    """

    lines: tuple[str, ...]
    names: Mapping[str, Any]
    preamble: tuple[str, ...] = ()


def fuse(guard: Guard, body: Body, slow_path: SlowPath) -> Callable[..., Any]:
    """The function with the given body behind a guard; it calls `slow_path(args, kwargs)` if the guard does not hold."""
    names = guard.names()
    names |= dict(body.names) | {"slow_path": slow_path}
    source = (
        "def fast(*args, **kwargs):\n"
        + ("    try:\n" + "".join(f"        {line}\n" for line in body.preamble) if body.preamble else "")
        + (f"    except {_MISMATCH_EXCEPTIONS}:\n        return slow_path(args, kwargs)\n" if body.preamble else "")
        + '    scope = {"function": function, "args": args, "kwargs": kwargs}\n'
        + f"    {guard.prelude}\n"
        + f"    if not ({guard.source}):\n        return slow_path(args, kwargs)\n"
        + "".join(f"    {line}\n" for line in body.lines)
    )
    exec(compile(source, "<check and call>", "exec"), names)
    fast: Callable[..., Any] = names["fast"]
    return fast


def call_body(program: CapturedProgram, flat: FlatFunction) -> Body:
    """Call a compiled function with the tensors, and arrange its outputs like the result."""
    names: dict[str, Any] = {"flat": flat}
    inputs_source, result_code = input_list_source(program, names), result_source(program)
    if inputs_source is None or result_code is None:
        # Dynamo's own code looks up the inputs and builds the result.
        return Body(("return bound(*args, **kwargs)",), {"bound": program.unguarded_call(flat)})
    if result_code == "outputs[0]":
        return Body((f"return flat({inputs_source})[0]",), names)
    return Body((f"outputs = flat({inputs_source})", f"return {result_code}"), names)


def replay_body(program: CapturedProgram, replays: ReplayedFunction, *, reuse_outputs: bool) -> Body:
    """Replay the recording that reads the inputs in place, or the buffered one if they are at other addresses.

    The device works while the guard is checked: a replay changes nothing but its own outputs, so an unnecessary one only
    costs time. Addresses are compared first, because a replay reads them.
    """
    general = replays.call_reusing_outputs if reuse_outputs else replays
    fallback_body = with_address_check(replays, call_body(program, general))
    names: dict[str, Any] = dict(fallback_body.names)
    result_code = result_source(program, "recorded[", "]" if reuse_outputs else "].data")
    input_sources = [
        source for position, source in enumerate(program.fullgraph.sources) if position not in set(program.held_positions)
    ]
    if result_code is None or any(not source for source in input_sources):
        return fallback_body
    direct = replays.direct
    names |= {"replay": torch_private.replay_function(direct.graph), "recorded": direct.outputs}
    conditions = [f"{source}.data_ptr() == d{number}" for number, source in enumerate(input_sources)]
    names |= {f"d{number}": address for number, address in enumerate(replays.addresses)}
    if not reuse_outputs:
        for number, (count, storage, uses) in enumerate(direct.uses):
            names |= {"uses": count, f"s{number}": storage, f"u{number}": uses}
            conditions.append(f"uses(s{number}) == u{number}")
    preamble = (*fallback_body.preamble, f"replayed = {' and '.join(conditions) or 'True'}", "if replayed:", "    replay()")
    # `data` is another tensor on the same memory, and avoids the dispatcher.
    lines = ("if replayed:", f"    return {result_code}", *fallback_body.lines)
    return Body(lines, names, preamble)


def with_address_check(replays: ReplayedFunction, body: Body) -> Body:
    """A body that runs no recording if a held tensor has moved to another address."""
    if not replays.pointers:
        return body
    address_check = ("if [pointer() for pointer in pointers] != addresses:", "    return slow_path(args, kwargs)")
    names = {**body.names, "pointers": replays.pointers, "addresses": replays.held_addresses}
    return Body(body.lines, names, (*address_check, *body.preamble))


def input_list_source(program: CapturedProgram, names: dict[str, Any]) -> str | None:
    """Source of the list of the graph's inputs; None if only Dynamo's own code can look up or create one of them."""
    parts = []
    for position, source in enumerate(program.fullgraph.sources):
        if position in program.fullgraph.identity_guarded:
            names[f"t{position}"] = program.inputs[position]
            parts.append(f"t{position}")
        elif position in program.held_positions or not source:
            return None
        else:
            parts.append(source)
    return f"[{', '.join(parts)}]"


def result_source(program: CapturedProgram, prefix: str = "outputs[", suffix: str = "]") -> str | None:
    """Source that arranges the graph's outputs like the result; None if the result contains anything else.

    The result is built twice, from different tensors: an object that is the same both times was not made by the call.
    """
    first, second = program.placeholders(), program.placeholders()
    task = program.task
    results = [
        program.fullgraph.bind(lambda *_, input_sources=input_sources: input_sources)(*task.args, **task.kwargs)
        for input_sources in (first, second)
    ]
    try:
        return _source_of(results[0], results[1], first, second, prefix, suffix)
    except _UnsupportedResultError:
        return None


class _UnsupportedResultError(Exception):
    """A result is more than nested tuples, lists and dictionaries of outputs."""


def _source_of(one: Any, other: Any, first: list[Any], second: list[Any], prefix: str, suffix: str) -> str:
    for position, output in enumerate(first):
        if one is output and other is second[position]:
            return f"{prefix}{position}{suffix}"
    if type(one) is not type(other) or type(one) not in (tuple, list, dict) or one is other or len(one) != len(other):
        raise _UnsupportedResultError
    if type(one) is dict:
        if list(one) != list(other) or not all(type(key) in (str, int) for key in one):
            raise _UnsupportedResultError
        parts = [f"{key!r}: {_source_of(one[key], other[key], first, second, prefix, suffix)}" for key in one]
        return "{" + ", ".join(parts) + "}"
    parts = [_source_of(*pair, first, second, prefix, suffix) for pair in zip(one, other, strict=True)]
    return "[" + ", ".join(parts) + "]" if type(one) is list else "(" + "".join(f"{part}, " for part in parts) + ")"
