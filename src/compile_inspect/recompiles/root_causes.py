"""The recompiles of a capture by root cause: one change of an input is one cause, however many functions see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_inspect.recompiles.causes import Cause, CauseKind, decisive
from compile_inspect.recompiles.proposing import remedies_for, why
from compile_inspect.records import Inspection, Recompile
from compile_inspect.records.recompile_causes import RecompileCause

NO_REASON = "torch gave no reason."

_OF_TENSORS = (CauseKind.SIZE, CauseKind.STRIDE, CauseKind.RANK, CauseKind.DTYPE, CauseKind.DEVICE, CauseKind.GRADIENT)
"""Kinds of change that a tensor carries with it into every function, under whatever name."""
_NAMELESS = (CauseKind.SHARED, CauseKind.OTHER)


@dataclass(frozen=True)
class _Event:
    place: int
    recompile: Recompile
    cause: Cause | None


def root_causes(inspection: Inspection) -> tuple[RecompileCause, ...]:
    """The causes in the order they were met, each with its recompiles and with remedies.

    >>> root_causes(Inspection())
    ()
    """
    groups: list[list[_Event]] = []
    for event in _events(inspection):
        joined = [group for group in groups if any(_same(event, other) for other in group)]
        # One event may show that two groups are one: the first of them keeps its place.
        place = groups.index(joined[0]) if joined else len(groups)
        merged = sorted([*(item for group in joined for item in group), event], key=lambda item: item.place)
        groups = [group for group in groups if group not in joined]
        groups.insert(place, merged)
    return tuple(_cause(group) for group in groups)


def _events(inspection: Inspection) -> list[_Event]:
    met: dict[tuple[str, str, int], list[Cause]] = {}
    events = []
    for place, recompile in enumerate(inspection.recompiles):
        known = met.setdefault(_function(recompile), [])
        cause = decisive(recompile.failures, known)
        known += [] if cause is None else [cause]
        events.append(_Event(place, recompile, cause))
    return events


def _function(recompile: Recompile) -> tuple[str, str, int]:
    return recompile.function, recompile.file, recompile.line


def _same(event: _Event, other: _Event) -> bool:
    """Whether two recompiles were made necessary by one change."""
    if event.cause is None or other.cause is None:
        return event.cause is other.cause
    if event.cause.kind is not other.cause.kind:
        return False
    if _function(event.recompile) == _function(other.recompile):
        return event.cause.key == other.cause.key
    change = event.cause.expected, event.cause.actual
    if None in change or change != (other.cause.expected, other.cause.actual):
        return False
    # Two tensors may have one size by chance; two variables that went from True to False mean nothing.
    return event.cause.kind in _OF_TENSORS or _leaf(event.cause) == _leaf(other.cause) != ""


def _leaf(cause: Cause) -> str:
    return cause.variable.rpartition(".")[2]


def _cause(group: Sequence[_Event]) -> RecompileCause:
    ids = tuple(item.recompile.compilation for item in group)
    causes = [item.cause for item in group if item.cause is not None]
    if not causes:
        return RecompileCause(NO_REASON, recompiles=ids)
    first = causes[0]
    values = _values(causes)
    if not first.variable and first.kind not in _NAMELESS:
        # A sentence or a remedy about something without a name would be wrong.
        return RecompileCause(f"A guard failed: {first.reason.rstrip('.')}.", "", values, ids)
    sizes = [int(value) for value in values if value.isdecimal()] if first.kind in (CauseKind.SIZE, CauseKind.CONDITION) else []
    return RecompileCause(why(first), first.variable, values, ids, tuple(remedies_for(first, sizes=sizes)))


def _values(causes: Sequence[Cause]) -> tuple[str, ...]:
    """What it was and became, each value once, as long as every recompile says so."""
    if any(cause.expected is None or cause.actual is None for cause in causes):
        return ()
    told = [value for cause in causes for value in (cause.expected, cause.actual) if value is not None]
    return tuple(dict.fromkeys(told))
