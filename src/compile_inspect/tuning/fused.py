"""Check and call as one generated function: nothing between the caller and the compiled code but what must be there.

The checks are torch's own in C++, all tensors in one call. They also fail where something harmless is unusual (another
number of threads, inference mode in a mixed form); `elsewhere` then looks more closely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compile_inspect.capture import torch_private
from compile_inspect.tuning.guard import MISFITS, Guard
from compile_inspect.variants.cuda_graph import Replays
from compile_inspect.variants.functional import Functional

Elsewhere = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Body:
    """What to do when everything is as it was: lines of source that return, and what their names stand for."""

    lines: tuple[str, ...]
    names: Mapping[str, Any]


def fused(guard: Guard, body: Body, elsewhere: Elsewhere) -> Callable[..., Any]:
    """The function of the given body behind the checks of a guard; `elsewhere(args, kwargs)` where they fail."""
    parts = guard.parts
    names = parts.names | dict(body.names) | {"elsewhere": elsewhere, "misfit": ValueError()}
    conditions = [*_modes(guard, names), *_tensors(guard, names), *parts.constants, *parts.others, *parts.held]
    lines = [line for step in parts.steps for line in _taking_apart(*step)]
    source = (
        "def fast(*args, **kwargs):\n    try:\n"
        + "".join(f"        {line}\n" for line in lines)
        + f"        like_the_example = {' and '.join(conditions)}\n"
        + f"    except {MISFITS}:\n        like_the_example = False\n"
        # Not in the handler: an error there would be shown as one that came while handling ours.
        + "    if not like_the_example:\n        return elsewhere(args, kwargs)\n"
        + "".join(f"    {line}\n" for line in body.lines)
    )
    exec(compile(source, "<check and call>", "exec"), names)
    fast: Callable[..., Any] = names["fast"]
    return fast


def calling(guard: Guard, flat: Callable[[list[Any]], list[Any]], functional: Functional) -> Body:
    """Call a compiled function with the list of tensors, and give its outputs the form of the result."""
    listed = guard.parts.listed
    if functional.single:
        return Body((f"return flat({listed})[0]",), {"flat": flat})
    names: dict[str, Any] = {"flat": flat}
    form = _form(functional, [f"outputs[{place}]" for place in range(_count(functional))], names)
    return Body((f"outputs = flat({listed})", f"return {form}"), names)


def replaying(guard: Guard, replays: Replays, functional: Functional, *, reuse_outputs: bool) -> Body:
    """Replay the recording that reads the inputs where they lie; the buffered one if they lie elsewhere."""
    direct = replays.direct
    names: dict[str, Any] = {
        "replay": torch_private.replay(direct.graph),
        "flat": replays.reusing if reuse_outputs else replays,
    }
    conditions = []
    for number, (name, address) in enumerate(zip(guard.parts.inputs, replays.addresses, strict=True)):
        names[f"d{number}"] = address
        conditions.append(f"{name}.data_ptr() == d{number}")
    if not reuse_outputs:
        for number, (count, storage, uses) in enumerate(direct.uses):
            names |= {"uses": count, f"s{number}": storage, f"u{number}": uses}
            conditions.append(f"uses(s{number}) == u{number}")
    places = range(_count(functional))
    names |= {f"r{place}": direct.outputs[place] for place in places}
    # `data` is another tensor on the same memory, without the dispatcher in between.
    ours = _form(functional, [f"r{place}" if reuse_outputs else f"r{place}.data" for place in places], names)
    theirs = calling(guard, names["flat"], functional)
    test = " and ".join(conditions) or "True"
    lines = (f"if {test}:", "    replay()", f"    return {ours}", *theirs.lines)
    return Body(lines, names | dict(theirs.names))


def _taking_apart(line: str, condition: str, is_tensor: bool) -> list[str]:
    return [line] if is_tensor else [line, f"if not ({condition}): raise misfit"]


def _modes(guard: Guard, names: dict[str, Any]) -> list[str]:
    """Conditions on grad mode and torch's other modes."""
    task = guard.parts.task
    names |= {"without": torch_private.state_check(gradients=False), "with_grad": torch_private.state_check(gradients=True)}
    names |= {"depth": torch_private.function_depth(), "depth_was": torch_private.function_depth()()}
    wanted = guard.parts.differentiable
    state = "with_grad()" if task.gradients else f"(without() or (with_grad() and not ({wanted})))"
    names["forward"] = torch_private.forward_mode()
    return [state, "depth() == depth_was", "forward._current_level < 0"]


def _tensors(guard: Guard, names: dict[str, Any]) -> list[str]:
    """Conditions on all tensors given."""
    parts = guard.parts
    if not parts.inputs:
        return []
    # The check takes no tensor twice: where the example gives one twice, each is looked at by itself.
    apart = len({id(item) for item in parts.examples}) < len(parts.examples)
    groups = [[number] for number in range(len(parts.inputs))] if apart else [list(range(len(parts.inputs)))]
    conditions = []
    for number, group in enumerate(groups):
        checks = torch_private.tensor_checks([parts.examples[index] for index in group])
        listed = ", ".join(parts.inputs[index] for index in group)
        names |= {f"check{number}_{kind}": check for kind, check in enumerate(checks)}
        conditions.append("(" + " or ".join(f"check{number}_{kind}({listed})" for kind in range(len(checks))) + ")")
    return conditions


def _count(functional: Functional) -> int:
    return sum(place is not None for place in functional.outputs)


def _form(functional: Functional, tensors: list[str], names: dict[str, Any]) -> str:
    """Source that puts output tensors into the form of the result."""
    leaves = []
    for number, place in enumerate(functional.outputs):
        names[f"leaf{number}"] = functional.leaves[number]
        leaves.append(_Source(f"leaf{number}" if place is None else tensors[place]))
    try:
        return _written(torch_private.unflatten(leaves, functional.structure))
    except TypeError:  # some class: let it be put together as it was taken apart
        names |= {"unflatten": torch_private.unflatten, "structure": functional.structure}
        return f"unflatten([{', '.join(leaf.text for leaf in leaves)}], structure)"


@dataclass(frozen=True)
class _Source:
    text: str


def _written(value: Any) -> str:
    if isinstance(value, _Source):
        return value.text
    if type(value) is tuple:
        return "(" + "".join(f"{_written(item)}, " for item in value) + ")"
    if type(value) is list:
        return "[" + ", ".join(_written(item) for item in value) + "]"
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return "{" + ", ".join(f"{key!r}: {_written(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"a result of type {type(value).__name__}")
