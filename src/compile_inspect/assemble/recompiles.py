"""Recompiles, the guards that failed, and the limits that were reached."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from compile_inspect.assemble.names import readable_condition, readable_name
from compile_inspect.assemble.stacks import parse_stack
from compile_inspect.journal import Event
from compile_inspect.records import Compilation, Guard, GuardFailure, LimitHit, Location, Recompile, Stack
from compile_inspect.records.compilations import first_compilation_id

_EARLIER_VERSION = re.compile(r"^(?P<version>!?\d+/\d+(?:/\d+)?): (?P<rest>.*)$", re.DOTALL)
_EXPECTED_ACTUAL = re.compile(r"\bexpected (?P<expected>.+?), actual (?P<actual>.+?)\.?$")
_EXPECTED = re.compile(r"\bexpected (?P<expected>\S.*?)\.?$")
_TENSOR = re.compile(r"^tensor '(?P<name>.+)' (?=[a-z_ ]+ mismatch)")
_EQUALITY = re.compile(r"^(?P<name>.+?) (?P<operator>==|!=|is not|is|<=|>=|<|>) (?P<value>.+)$")
_FLAG = re.compile(r"^(?P<name>\w+)=(?P<value>[01])$")
_SIZE = re.compile(r"(?P<name>[^\W\d][\w.\[\]' ]*)\.size\(\)\[\d+\]")
_STATE_CHANGED = re.compile(r"^GLOBAL_STATE changed: (?P<name>\w+)")
_STATE = re.compile(r"___check_global_state\(\) against (?P<state>\{.*\})")
_UNEXPECTED = "Unexpected recompilation"
_OF_TYPE = re.compile(r"^(?P<name>.+) is of type (?P<value>.+)$")


def assemble_recompiles(
    events: Iterable[Event], compilations: Mapping[str, Compilation], guards: Iterable[Guard]
) -> list[Recompile]:
    """All recompiles with the failed guards, that of the newest version first."""
    locations = {(guard.compilation, guard.variable): guard.location for guard in reversed(tuple(guards)) if guard.location}
    events = list(events)
    actual = {event["compilation"]: event["values"] for event in events if event["kind"] == "actual values"}
    states = {event["compilation"]: event["text"] for event in events if event["kind"] == "guard tree"}
    threads: dict[str, set[object]] = defaultdict(set)
    for event in events:
        if event["kind"] == "start" and event["compilation"] is not None:
            threads[first_compilation_id(event["compilation"])].add(event.get("thread"))
    recompiles = []
    for event in events:
        if event["kind"] != "recompile" or event["compilation"] is None:
            continue
        frame = _frame(event["compilation"], compilations)
        values = {readable_name(name): value for name, value in actual.get(event["compilation"], {}).items()}
        parsed = (_with_reset_mark(parse_failure(reason, values), event["compilation"]) for reason in event["reasons"])
        several = len(threads[first_compilation_id(event["compilation"])])
        parsed = (_among_threads(_with_global_state(failure, states), several) for failure in parsed)
        # Torch's message for a tensor does not contain the line that uses the tensor; its guard does.
        failures = tuple(
            failure
            if failure.location
            else replace(failure, location=locations.get((failure.earlier_version, failure.variable)))
            for failure in parsed
        )
        recompiles.append(
            Recompile(
                compilation=event["compilation"],
                function=frame.function if frame else "",
                file=frame.file if frame else "",
                line=frame.line if frame else 0,
                failures=failures,
            )
        )
    return recompiles


def assemble_limits(events: Iterable[Event], compilations: Mapping[str, Compilation]) -> list[LimitHit]:
    """All frames that reached the recompile limit."""
    last_reason: dict[str | None, str] = {}
    limits = []
    for event in events:
        if event["kind"] == "recompile":
            last_reason[event["compilation"]] = event["reasons"][0] if event["reasons"] else ""
        elif event["kind"] == "limit":
            frame = _frame(event["compilation"], compilations)
            reason = parse_failure(last_reason.get(event["compilation"], ""), {}).reason
            limits.append(
                LimitHit(
                    compilation=event["compilation"],
                    function=frame.function if frame else "",
                    file=frame.file if frame else "",
                    line=frame.line if frame else 0,
                    limit=event["limit"],
                    value=event.get("value"),
                    last_reason=reason,
                )
            )
    return limits


def _with_reset_mark(failure: GuardFailure, compilation: str) -> GuardFailure:
    """Torch uses unmarked ids for earlier versions; after a reset, ids in a capture are marked."""
    mark = compilation.partition("@")[2]
    return (
        failure
        if failure.earlier_version is None or not mark
        else replace(failure, earlier_version=f"{failure.earlier_version}@{mark}")
    )


def _frame(identifier: str | None, compilations: Mapping[str, Compilation]) -> Compilation | None:
    """The compilation; or, if torch gave up before it began, an earlier one of the same frame."""
    if identifier is None:
        return None
    return compilations.get(identifier) or compilations.get(first_compilation_id(identifier))


def parse_failure(text: str, actual_values: Mapping[str, str]) -> GuardFailure:
    """Parse one failed guard.

    >>> failure = parse_failure("0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5", {})
    >>> failure.earlier_version, failure.variable, failure.expected, failure.actual
    ('0/0', 'x', '4', '5')
    >>> parse_failure("0/0: tensor 'kwargs['ids']' size mismatch at index 0. expected 4, actual 5", {}).variable
    "kwargs['ids']"
    >>> failure = parse_failure("0/1: 2 <= L['x'].size()[0] <= 10", {"x.size()[0]": "11"})
    >>> failure.variable, failure.expected, failure.actual
    ('x.size()[0]', '2 <= x.size()[0] <= 10', '11')
    >>> failure = parse_failure("0/1: Unexpected recompilation: runtime guards failed even though they passed", {})
    >>> failure.variable, failure.expected
    ('', None)
    """
    match = _EARLIER_VERSION.match(text)
    earlier_version, rest = (match["version"], match["rest"]) if match else (None, text)
    stack = Stack(parse_stack(rest))
    first, _, comment = rest.partition("\n")[0].partition("  # ")
    reason = readable_condition("", first.strip())
    location = stack.user_line or _location_in_comment(comment)
    tensor = _TENSOR.match(reason)
    variable = tensor["name"] if tensor else ""
    expected = actual = None
    both = _EXPECTED_ACTUAL.search(reason)
    one = _EXPECTED.search(reason)
    condition = _OF_TYPE.match(reason) or _EQUALITY.match(reason)
    if condition is not None and not _is_expression(condition["name"]):
        condition = None  # a message, not a condition on a variable
    if both is not None:
        expected, actual = both["expected"], both["actual"]
    elif one is not None:
        expected = one["expected"]
        flag = _FLAG.match(expected)
        actual = f"{flag['name']}={1 - int(flag['value'])}" if flag else None
    elif (size := _SIZE.search(reason)) is not None:
        # For example `2 <= x.size()[0] <= 10`: the condition itself is the expected value.
        variable, expected, actual = size[0], reason, actual_values.get(size[0])
    elif condition is not None:
        variable, expected = condition["name"], condition["value"]
        key = f"type({variable})" if _OF_TYPE.match(reason) else variable
        actual = actual_values.get(key)
    return GuardFailure(earlier_version, variable, reason, expected, actual, location)


def _is_expression(text: str) -> bool:
    """Whether a text is a variable or an expression, as `readable_name` writes it.

    >>> _is_expression("global SCALE"), _is_expression("len(global NAMES)"), _is_expression("runtime guards failed")
    (True, True, False)
    """
    try:
        ast.parse(re.sub(r"\bglobal (?=\w)", "", text), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _among_threads(failure: GuardFailure, threads: int) -> GuardFailure:
    """If no guard fails, torch asks for a bug report; with several threads that compile the function, this is not a bug."""
    if threads < 2 or not failure.reason.startswith(_UNEXPECTED):
        return failure
    return replace(failure, reason=f"torch found no failed guard; {threads} threads compiled this function")


def _with_global_state(failure: GuardFailure, trees: Mapping[str | None, str]) -> GuardFailure:
    """Torch names the part of its global state that changed; the guard tree has its earlier value."""
    changed = _STATE_CHANGED.match(failure.reason)
    if changed is None:
        return failure
    name = changed["name"]
    match = _STATE.search(trees.get(failure.earlier_version, ""))
    try:
        before = json.loads(match["state"]).get(name) if match else None
    except ValueError:
        before = None
    actual = str(not before) if isinstance(before, bool) else None
    return replace(failure, variable=name, expected=None if before is None else str(before), actual=actual)


def _location_in_comment(comment: str) -> Location | None:
    match = re.search(r"# (?P<file>\S+):(?P<line>\d+) in (?P<function>\w+)", "# " + comment)
    if match is None:
        return None
    code = comment.partition("  # ")[0].strip()
    return Location(match["file"], int(match["line"]), match["function"], code)
