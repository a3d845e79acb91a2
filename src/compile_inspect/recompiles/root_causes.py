"""Group the recompiles of a capture by root cause: one change of an input is one cause, even if it affects many functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_inspect.recompiles.causes import Cause, CauseKind, decisive_cause
from compile_inspect.recompiles.proposals import explain, remedies_for
from compile_inspect.records import Inspection, Recompile
from compile_inspect.records.recompile_causes import RecompileCause

NO_REASON = "torch gave no reason."

_TENSOR_KINDS = (CauseKind.SIZE, CauseKind.STRIDE, CauseKind.RANK, CauseKind.DTYPE, CauseKind.DEVICE, CauseKind.GRADIENT)
"""Kinds of change that follow a tensor into every function, under any name."""
_UNNAMED_KINDS = (CauseKind.SHARED, CauseKind.OTHER)


@dataclass(frozen=True)
class _Event:
    place: int
    recompile: Recompile
    cause: Cause | None


def root_causes(inspection: Inspection) -> tuple[RecompileCause, ...]:
    """The causes in order of occurrence, each with its recompiles and remedies.

    >>> root_causes(Inspection())
    ()
    """
    groups: list[list[_Event]] = []
    for event in _events(inspection):
        matching_groups = [group for group in groups if any(_same_cause(event, other) for other in group)]
        # One event may connect two groups: the merged group takes the position of the first.
        index = groups.index(matching_groups[0]) if matching_groups else len(groups)
        merged = sorted([*(item for group in matching_groups for item in group), event], key=lambda item: item.place)
        groups = [group for group in groups if group not in matching_groups]
        groups.insert(index, merged)
    return tuple(_cause(group) for group in groups)


def _events(inspection: Inspection) -> list[_Event]:
    causes_by_function: dict[tuple[str, str, int], list[Cause]] = {}
    events = []
    for place, recompile in enumerate(inspection.recompiles):
        earlier = causes_by_function.setdefault(_function(recompile), [])
        cause = decisive_cause(recompile.failures, earlier)
        earlier += [] if cause is None else [cause]
        events.append(_Event(place, recompile, cause))
    return events


def _function(recompile: Recompile) -> tuple[str, str, int]:
    return recompile.function, recompile.file, recompile.line


def _same_cause(event: _Event, other: _Event) -> bool:
    """Whether one change caused both recompiles."""
    if event.cause is None or other.cause is None:
        return event.cause is other.cause
    if event.cause.kind is not other.cause.kind:
        return False
    if _function(event.recompile) == _function(other.recompile):
        return event.cause.key == other.cause.key
    change = event.cause.expected, event.cause.actual
    if None in change or change != (other.cause.expected, other.cause.actual):
        return False
    # The same change of two tensors is one cause; two variables that both went from True to False may be unrelated.
    return event.cause.kind in _TENSOR_KINDS or _leaf(event.cause) == _leaf(other.cause) != ""


def _leaf(cause: Cause) -> str:
    return cause.variable.rpartition(".")[2]


def _cause(group: Sequence[_Event]) -> RecompileCause:
    ids = tuple(item.recompile.compilation for item in group)
    causes = [item.cause for item in group if item.cause is not None]
    if not causes:
        return RecompileCause(NO_REASON, recompiles=ids)
    first = causes[0]
    values = _values(causes)
    if not first.variable and first.kind not in _UNNAMED_KINDS:
        # An explanation or a remedy would need the name of a variable.
        return RecompileCause(f"A guard failed: {first.reason.rstrip('.')}.", "", values, ids)
    sizes = [int(value) for value in values if value.isdecimal()] if first.kind in (CauseKind.SIZE, CauseKind.CONDITION) else []
    return RecompileCause(explain(first), first.variable, values, ids, tuple(remedies_for(first, sizes=sizes)))


def _values(causes: Sequence[Cause]) -> tuple[str, ...]:
    """All expected and actual values, each once; empty unless every recompile reports them."""
    if any(cause.expected is None or cause.actual is None for cause in causes):
        return ()
    values = [value for cause in causes for value in (cause.expected, cause.actual) if value is not None]
    return tuple(dict.fromkeys(values))
