"""Graph breaks: one per cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compile_inspect.assemble.compilations import is_soft_failure
from compile_inspect.assemble.stacks import StackTable, parse_stack
from compile_inspect.journal import Event
from compile_inspect.records import BreakEffect, GraphBreak, Location, Stack

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


@dataclass(frozen=True)
class _Frame:
    """How the frame of a compilation was called, and how many of the last lines of that are inside compiled code."""

    call: tuple[Location, ...] = ()
    inside: int | None = None


@dataclass(frozen=True)
class _LocatedBreak:
    """One break where Dynamo reached it, with the lines inside compiled code that lead to it, and those that were traced."""

    record: GraphBreak
    compiled: tuple[Location, ...]
    traced: tuple[Location, ...]

    @property
    def innermost(self) -> tuple[str, int] | None:
        """The line that broke the graph, whoever wrote it."""
        return _line(self.traced[-1]) if self.traced else None


def assemble_breaks(events: Iterable[Event], stacks: StackTable, call_stacks: Mapping[str, int]) -> list[GraphBreak]:
    """All causes of graph breaks in the order in which Dynamo reached them.

    If Dynamo gave up on a frame, the reason is in the frame's metrics; if the same cause was logged before,
    only its effect changes.
    """
    causes: list[_LocatedBreak] = []
    whole_graph: dict[str | None, bool] = {}
    inside: dict[str | None, int | None] = {}
    for event in events:
        identifier = event.get("compilation")
        if event["kind"] == "start":
            inside[identifier] = event.get("inside")
        elif event["kind"] == "frame":
            whole_graph[identifier] = bool(event.get("fullgraph"))
        elif event["kind"] == "graph break" or (event["kind"] == "metrics" and _broke_the_graph(event["metrics"])):
            call = stacks.stack(call_stacks.get(identifier or ""))
            frame = _Frame(call.locations if call is not None else (), inside.get(identifier))
            if event["kind"] == "graph break":
                _merge(causes, _from_log(event, stacks, frame))
            else:
                _merge_failure(causes, _from_metrics(event, stacks, frame, whole_graph.get(identifier, False)))
    return [replace(located.record, parent=_leader(causes, number)) for number, located in enumerate(causes)]


def _leader(causes: list[_LocatedBreak], number: int) -> int | None:
    """The earlier break without which torch would not have reached this one, judged by lines; None if there is none."""
    located = causes[number]
    caller = _caller(causes, located)
    if caller is not None and caller < number:
        return caller
    return next((index for index in range(number) if _traced_past(causes[index], located)), None)


def _caller(causes: list[_LocatedBreak], located: _LocatedBreak) -> int | None:
    """The break whose line, left to Python, called what broke here.

    Where another break has split the same line, either of them can have led here.
    """
    for called in reversed([_line(location) for location in located.compiled[: -len(located.traced) or None]]):
        split = [index for index, item in enumerate(causes) if item.traced and _line(item.traced[0]) == called]
        if split and all(causes[index].innermost == called for index in split):
            return split[0]
    return None


def _traced_past(first: _LocatedBreak, located: _LocatedBreak) -> bool:
    """Whether torch had traced past this line, without a break, when it reached `first` further down in the same function.

    Torch compiled the function by itself only because it then abandoned the frame that it was tracing.
    """
    if set(first.record.compilations) & set(located.record.compilations):
        return False
    for one, other in zip(_outside_dynamo(first.compiled), _outside_dynamo(located.compiled), strict=False):
        if one != other:
            return (one.file, one.function) == (other.file, other.function) and one.line > other.line
    return False


def _from_log(event: Event, stacks: StackTable, frame: _Frame) -> _LocatedBreak:
    message = parse_message(event["message"])
    inner = stacks.stack(stacks.number(event["stack"]))
    first = event["reason"].splitlines()[0] if event["reason"] else ""
    instruction = _INSTRUCTION.match(first)
    # A break that cannot be handled (inside a loop, say) is told together with the one that came first, which is the cause.
    chained = _CHAINED in event["message"]
    record = GraphBreak(
        kind=message.kind if chained else event["type"],
        location=None,
        own_location=None,
        effect=BreakEffect.SKIPPED if first.startswith(_SKIPPING) else BreakEffect.SPLIT,
        identifier=message.identifier if chained else event.get("identifier") or message.identifier,
        link=message.link if chained else event.get("link") or message.link,
        explanation=message.explanation or (message.kind if message.kind != event["type"] else ""),
        hints=message.hints,
        context=message.context,
        traced_instruction=instruction["instruction"] if instruction else "",
        compilations=(event["compilation"],) if event["compilation"] else (),
        text=event["reason"],
    )
    return _placed(record, frame, inner.locations if inner else (), stacks)


def _from_metrics(event: Event, stacks: StackTable, frame: _Frame, fullgraph: bool) -> _LocatedBreak:
    metrics = event["metrics"]
    text = str(metrics.get("fail_reason") or "")
    message = parse_message(text)
    locations = parse_stack(text)
    if not locations and metrics.get("fail_user_frame_filename"):
        locations = (Location(str(metrics["fail_user_frame_filename"]), int(metrics.get("fail_user_frame_lineno") or 0)),)
    if not locations and metrics.get("co_filename"):
        function = str(metrics.get("co_name", ""))
        locations = (Location(str(metrics["co_filename"]), int(metrics.get("co_firstlineno") or 0), function),)
    record = GraphBreak(
        kind=message.kind,
        location=None,
        own_location=None,
        effect=BreakEffect.RAISED if fullgraph else BreakEffect.SKIPPED,
        identifier=message.identifier,
        link=message.link,
        explanation=message.explanation,
        hints=message.hints,
        context=message.context,
        compilations=(event["compilation"],) if event["compilation"] else (),
        text=text,
    )
    return _placed(record, frame, locations, stacks)


def _placed(record: GraphBreak, frame: _Frame, traced: tuple[Location, ...], stacks: StackTable) -> _LocatedBreak:
    """A break with its place, which is inside compiled code: what called that is not to blame.

    The stack goes from the program's first line on: how the frame was called, then what was traced of it. The last line of
    the call is the frame itself, of which the traced lines know better.
    """
    outer = frame.call[:-1] if traced else frame.call
    around = outer if frame.inside is None else outer[len(frame.call) - frame.inside :]
    compiled = Stack((*_outside_dynamo(around), *traced))
    whole = (*_outside_dynamo(outer), *traced)
    own, user = compiled.own_line, compiled.user_line
    placed = replace(
        record,
        location=compiled.innermost if user is own else user,
        own_location=own,
        stack=stacks.add(whole) if whole else None,
    )
    return _LocatedBreak(placed, compiled.locations, traced)


def _outside_dynamo(locations: Iterable[Location]) -> tuple[Location, ...]:
    return tuple(location for location in locations if "_dynamo" not in location.file)


def _merge_failure(causes: list[_LocatedBreak], new: _LocatedBreak) -> None:
    """A frame was given up. If the cause was logged before, in whichever line, only its effect is news."""
    for index, known in enumerate(causes):
        if known.record.kind == new.record.kind and set(new.record.compilations) <= set(known.record.compilations):
            causes[index] = replace(known, record=replace(known.record, effect=_effect(known.record, new.record)))
            return
    _merge(causes, new)


def _merge(causes: list[_LocatedBreak], new: _LocatedBreak) -> None:
    """Add a break, or count it with the one it repeats: the same kind at the line of the user's, or at the innermost line.

    The latter is what torch itself calls a duplicate.
    """
    for index, known in enumerate(causes):
        if known.record.kind == new.record.kind and _is_same_place(known, new):
            compilations = tuple(dict.fromkeys((*known.record.compilations, *new.record.compilations)))
            effect = _effect(known.record, new.record)
            merged = replace(known.record, compilations=compilations, hits=len(compilations), effect=effect)
            causes[index] = replace(known, record=merged)
            return
    causes.append(new)


def _effect(known: GraphBreak, new: GraphBreak) -> BreakEffect:
    """What both did to their frames; of two reports about one compilation, that of a frame given up is the last word."""
    effects = {known.effect, new.effect}
    if len(effects) == 1 or BreakEffect.RAISED in effects:
        return BreakEffect.RAISED if BreakEffect.RAISED in effects else known.effect
    split, skipped = (known, new) if known.effect is BreakEffect.SPLIT else (new, known)
    told_again = split.effect is BreakEffect.SPLIT and set(split.compilations) <= set(skipped.compilations)
    return skipped.effect if told_again else BreakEffect.MIXED


def _is_same_place(one: _LocatedBreak, other: _LocatedBreak) -> bool:
    places = [Stack(item.compiled).user_line for item in (one, other)]
    if places[0] is None or places[1] is None:
        return places[0] is places[1]
    return _line(places[0]) == _line(places[1]) or (one.innermost is not None and one.innermost == other.innermost)


def _line(location: Location) -> tuple[str, int]:
    return location.file, location.line


def _broke_the_graph(metrics: Mapping[str, object]) -> bool:
    # Hitting the recompile limit is no fault of a line; it has a record of its own.
    limited = str(metrics.get("fail_reason") or "").startswith("Dynamo recompile limit exceeded")
    return is_soft_failure(str(metrics.get("fail_type") or "")) and not limited
