"""Graph breaks: one per cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compile_inspect.assemble.compilations import is_soft_failure
from compile_inspect.assemble.stacks import StackTable, parse_stack
from compile_inspect.journal import Event
from compile_inspect.records import BreakEffect, GraphBreak, Location

_LINK = re.compile(r"https?://\S*/gb/(gb\d+)\.html")
_INSTRUCTION = re.compile(r"^Encountered graph break when attempting to trace (?P<instruction>.*?):?\s*$")
_CHAINED = "While handling this graph break, another graph break occurred"
_SKIPPING = "Failed to handle graph break gracefully. Skipping the function"
_FIELD = re.compile(r"^  (?P<field>Explanation|Hint|Developer debug context): ?(?P<text>.*)$")


@dataclass(frozen=True)
class Message:
    """The parts of torch's message for a graph break."""

    kind: str
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    identifier: str | None = None
    link: str | None = None


def parse_message(text: str) -> Message:
    """Take torch's message apart.

    >>> parse_message("Call of print\\n  Explanation: not traceable\\n  Hint: remove it\\n").hints
    ('remove it',)
    """
    kind = next((line.strip() for line in text.splitlines() if line.strip()), "unknown")
    fields: list[tuple[str, list[str]]] = []
    for line in text.splitlines()[1:]:
        if "For more details about this graph break" in line or line.startswith("from user code"):
            break
        match = _FIELD.match(line)
        if match is not None:
            fields.append((match["field"], [match["text"]]))
        elif fields:
            fields[-1][1].append(line.strip())
    texts = [(field, "\n".join(lines).strip()) for field, lines in fields]
    link = _LINK.search(text)
    return Message(
        kind=kind,
        explanation=next((value for field, value in texts if field == "Explanation"), ""),
        hints=tuple(value for field, value in texts if field == "Hint"),
        context=next((value for field, value in texts if field == "Developer debug context"), ""),
        identifier=link[1].upper() if link else None,
        link=link[0] if link else None,
    )


def assemble_breaks(events: Iterable[Event], stacks: StackTable, call_stacks: Mapping[str, int]) -> list[GraphBreak]:
    """All causes of graph breaks in the order they were met.

    Frames that Dynamo gave up on carry their reason in their metrics; where the same cause was logged before,
    only its effect changes.
    """
    causes: dict[tuple[str, str, int], GraphBreak] = {}
    whole_graph: dict[str | None, bool] = {}
    for event in events:
        if event["kind"] == "frame":
            whole_graph[event["compilation"]] = bool(event.get("fullgraph"))
        elif event["kind"] == "graph break":
            _merge(causes, _from_log(event, stacks, call_stacks))
        elif event["kind"] == "metrics" and _broke_the_graph(event["metrics"]):
            _merge_failure(causes, _from_metrics(event, stacks, call_stacks, whole_graph.get(event["compilation"], False)))
    return list(causes.values())


def _from_log(event: Event, stacks: StackTable, call_stacks: Mapping[str, int]) -> GraphBreak:
    message = parse_message(event["message"])
    inner = stacks.stack(stacks.number(event["stack"]))
    number = _whole_stack(event["compilation"], inner.locations if inner else (), stacks, call_stacks)
    first = event["reason"].splitlines()[0] if event["reason"] else ""
    instruction = _INSTRUCTION.match(first)
    # A break that cannot be handled (inside a loop, say) is told together with the one that came first, which is the cause.
    chained = _CHAINED in event["message"]
    return GraphBreak(
        kind=message.kind if chained else event["type"],
        location=stacks.user_line(number),
        own_location=_own_line(number, stacks),
        effect=BreakEffect.SKIPPED if first.startswith(_SKIPPING) else BreakEffect.SPLIT,
        identifier=message.identifier if chained else event.get("identifier") or message.identifier,
        link=message.link if chained else event.get("link") or message.link,
        explanation=message.explanation or (message.kind if message.kind != event["type"] else ""),
        hints=message.hints,
        context=message.context,
        traced_instruction=instruction["instruction"] if instruction else "",
        stack=number,
        compilations=(event["compilation"],) if event["compilation"] else (),
        text=event["reason"],
    )


def _from_metrics(event: Event, stacks: StackTable, call_stacks: Mapping[str, int], fullgraph: bool) -> GraphBreak:
    metrics = event["metrics"]
    text = str(metrics.get("fail_reason") or "")
    message = parse_message(text)
    locations = parse_stack(text)
    if not locations and metrics.get("fail_user_frame_filename"):
        locations = (Location(str(metrics["fail_user_frame_filename"]), int(metrics.get("fail_user_frame_lineno") or 0)),)
    if not locations and metrics.get("co_filename"):
        function = str(metrics.get("co_name", ""))
        locations = (Location(str(metrics["co_filename"]), int(metrics.get("co_firstlineno") or 0), function),)
    number = _whole_stack(event["compilation"], locations, stacks, call_stacks)
    return GraphBreak(
        kind=message.kind,
        location=stacks.user_line(number),
        own_location=_own_line(number, stacks),
        effect=BreakEffect.RAISED if fullgraph else BreakEffect.SKIPPED,
        identifier=message.identifier,
        link=message.link,
        explanation=message.explanation,
        hints=message.hints,
        context=message.context,
        stack=number,
        compilations=(event["compilation"],) if event["compilation"] else (),
        text=text,
    )


def _whole_stack(
    compilation: str | None, inner: tuple[Location, ...], stacks: StackTable, call_stacks: Mapping[str, int]
) -> int | None:
    """The stack of a break from the program's first line on: how the frame was called, then what it traced."""
    call = stacks.stack(call_stacks.get(compilation or ""))
    # The last line of the call is the frame itself, of which the inner stack knows the line.
    outer = call.locations[:-1] if call is not None and inner else call.locations if call is not None else ()
    outer = tuple(location for location in outer if "_dynamo" not in location.file)
    return stacks.add((*outer, *inner)) if outer or inner else None


def _merge_failure(causes: dict[tuple[str, str, int], GraphBreak], new: GraphBreak) -> None:
    """A frame was given up. If the cause was logged before, in whichever line, only its effect is news."""
    for key, known in causes.items():
        if known.kind == new.kind and set(new.compilations) <= set(known.compilations):
            causes[key] = replace(known, effect=new.effect)
            return
    _merge(causes, new)


def _merge(causes: dict[tuple[str, str, int], GraphBreak], new: GraphBreak) -> None:
    place = (new.location.file, new.location.line) if new.location else ("", 0)
    key = (new.kind, *place)
    known = causes.get(key)
    if known is None:
        causes[key] = new
        return
    compilations = tuple(dict.fromkeys((*known.compilations, *new.compilations)))
    effect = new.effect if new.effect is not BreakEffect.SPLIT else known.effect
    causes[key] = replace(known, compilations=compilations, hits=len(compilations), effect=effect)


def _own_line(number: int | None, stacks: StackTable) -> Location | None:
    stack = stacks.stack(number)
    return None if stack is None else stack.own_line


def _broke_the_graph(metrics: Mapping[str, object]) -> bool:
    # Hitting the recompile limit is no fault of a line; it has a record of its own.
    limited = str(metrics.get("fail_reason") or "").startswith("Dynamo recompile limit exceeded")
    return is_soft_failure(str(metrics.get("fail_type") or "")) and not limited
