"""Check and call in one generated function, with nothing unnecessary between the caller and the compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compile_inspect import torch_private
from compile_inspect.variants.cuda_graph import Replays
from compile_inspect.variants.guard import Guard
from compile_inspect.variants.program import Flat, Program

Elsewhere = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]

_MISFITS = "(KeyError, IndexError, TypeError, AttributeError, ValueError, RuntimeError)"
"""Exceptions of unpacking inputs that are not like the example."""


@dataclass(frozen=True)
class Body:
    """The code to run for a call that the guard accepts.

    `lines` return the result; `before` are lines that may run ahead of the guard, for work whose result is used only if
    the guard holds.
    """

    lines: tuple[str, ...]
    names: Mapping[str, Any]
    before: tuple[str, ...] = ()


def fused(guard: Guard, body: Body, elsewhere: Elsewhere) -> Callable[..., Any]:
    """The function with the given body behind a guard; it calls `elsewhere(args, kwargs)` if the guard does not hold."""
    names = guard.names()
    names |= dict(body.names) | {"elsewhere": elsewhere}
    source = (
        "def fast(*args, **kwargs):\n"
        + ("    try:\n" + "".join(f"        {line}\n" for line in body.before) if body.before else "")
        + (f"    except {_MISFITS}:\n        return elsewhere(args, kwargs)\n" if body.before else "")
        + '    scope = {"function": function, "args": args, "kwargs": kwargs}\n'
        + f"    {guard.prelude}\n"
        + f"    if not ({guard.source}):\n        return elsewhere(args, kwargs)\n"
        + "".join(f"    {line}\n" for line in body.lines)
    )
    exec(compile(source, "<check and call>", "exec"), names)
    fast: Callable[..., Any] = names["fast"]
    return fast


def calling(program: Program, flat: Flat) -> Body:
    """Call a compiled function with the tensors, and arrange its outputs like the result."""
    names: dict[str, Any] = {"flat": flat}
    listed, form = listed_inputs(program, names), result_form(program)
    if listed is None or form is None:
        # Dynamo's own code looks up the inputs and builds the result.
        return Body(("return bound(*args, **kwargs)",), {"bound": program.direct(flat)})
    if form == "outputs[0]":
        return Body((f"return flat({listed})[0]",), names)
    return Body((f"outputs = flat({listed})", f"return {form}"), names)


def replaying(program: Program, replays: Replays, *, reuse_outputs: bool) -> Body:
    """Replay the recording that reads the inputs in place, or the buffered one if they are at other addresses.

    The device works while the guard is checked: a replay changes nothing but its own outputs, so an unnecessary one only
    costs time. Addresses are compared first, because a replay reads them.
    """
    general = replays.reusing if reuse_outputs else replays
    theirs = in_place(replays, calling(program, general))
    names: dict[str, Any] = dict(theirs.names)
    form = result_form(program, "recorded[", "]" if reuse_outputs else "].data")
    given = [source for place, source in enumerate(program.whole.sources) if place not in set(program.held)]
    if form is None or any(not source for source in given):
        return theirs
    direct = replays.direct
    names |= {"replay": torch_private.replay(direct.graph), "recorded": direct.outputs}
    conditions = [f"{source}.data_ptr() == d{number}" for number, source in enumerate(given)]
    names |= {f"d{number}": address for number, address in enumerate(replays.addresses)}
    if not reuse_outputs:
        for number, (count, storage, uses) in enumerate(direct.uses):
            names |= {"uses": count, f"s{number}": storage, f"u{number}": uses}
            conditions.append(f"uses(s{number}) == u{number}")
    before = (*theirs.before, f"replayed = {' and '.join(conditions) or 'True'}", "if replayed:", "    replay()")
    # `data` is another tensor on the same memory, and avoids the dispatcher.
    lines = ("if replayed:", f"    return {form}", *theirs.lines)
    return Body(lines, names, before)


def in_place(replays: Replays, body: Body) -> Body:
    """A body that runs nothing recorded if a held tensor has moved."""
    if not replays.pointers:
        return body
    moved = ("if [pointer() for pointer in pointers] != addresses:", "    return elsewhere(args, kwargs)")
    names = {**body.names, "pointers": replays.pointers, "addresses": replays.held_addresses}
    return Body(body.lines, names, (*moved, *body.before))


def listed_inputs(program: Program, names: dict[str, Any]) -> str | None:
    """Source of the list of the graph's inputs; None if one must be looked up or made in a way that only Dynamo knows."""
    parts = []
    for place, source in enumerate(program.whole.sources):
        if place in program.whole.identified:
            names[f"t{place}"] = program.inputs[place]
            parts.append(f"t{place}")
        elif place in program.held or not source:
            return None
        else:
            parts.append(source)
    return f"[{', '.join(parts)}]"


def result_form(program: Program, before: str = "outputs[", after: str = "]") -> str | None:
    """Source that arranges the graph's outputs like the result; None if the result contains anything else.

    The result is built twice, from different tensors: an object that is the same both times was not made by the call.
    """
    first, second = program.stand_ins(), program.stand_ins()
    task = program.task
    results = [program.whole.bound(lambda *_, given=given: given)(*task.args, **task.kwargs) for given in (first, second)]
    try:
        return _written(results[0], results[1], first, second, before, after)
    except _NotPlain:
        return None


class _NotPlain(Exception):  # noqa: N818 (it reads as a statement of fact)
    """A result is more than nested tuples, lists and dictionaries of outputs."""


def _written(one: Any, other: Any, first: list[Any], second: list[Any], before: str, after: str) -> str:
    for place, output in enumerate(first):
        if one is output and other is second[place]:
            return f"{before}{place}{after}"
    if type(one) is not type(other) or type(one) not in (tuple, list, dict) or one is other or len(one) != len(other):
        raise _NotPlain
    if type(one) is dict:
        if list(one) != list(other) or not all(type(key) in (str, int) for key in one):
            raise _NotPlain
        parts = [f"{key!r}: {_written(one[key], other[key], first, second, before, after)}" for key in one]
        return "{" + ", ".join(parts) + "}"
    parts = [_written(*pair, first, second, before, after) for pair in zip(one, other, strict=True)]
    return "[" + ", ".join(parts) + "]" if type(one) is list else "(" + "".join(f"{part}, " for part in parts) + ")"
