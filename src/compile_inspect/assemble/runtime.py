"""Assemble cache lookups and CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compile_inspect.assemble.stacks import parse_stack
from compile_inspect.journal import Event
from compile_inspect.records import CacheEvent, CacheOutcome, CudaGraphEvent, CudaGraphOutcome, Direction, Stack

_CACHES = {"fx_graph": "FX graph", "aotautograd": "AOTAutograd", "fx_graph_bundled": "FX graph (bundled)"}
_OUTCOMES = {"hit": CacheOutcome.HIT, "miss": CacheOutcome.MISS, "guard_miss": CacheOutcome.MISS, "bypass": CacheOutcome.BYPASS}
_DIRECTIONS: dict[bool | None, Direction] = {True: Direction.BACKWARD, False: Direction.FORWARD}
_CPU_REASON = "the graph runs on {devices}, which does not support CUDA graphs; torch accepts the option silently"


def assemble_caches(events: Iterable[Event]) -> list[CacheEvent]:
    """All lookups in torch's caches."""
    return [
        CacheEvent(
            compilation=event["compilation"],
            cache=_CACHES.get(event["cache"]) or str(event["cache"]),
            outcome=_OUTCOMES[event["outcome"]],
            reason="a guard of the stored entry failed" if event["outcome"] == "guard_miss" else _reason(event),
            key=event["key"],
            seconds_saved=event["saved"] / 1e9 if event.get("saved") and event["outcome"] == "hit" else None,
        )
        for event in events
        if event["kind"] == "cache" and event["outcome"] in _OUTCOMES
    ]


def _reason(event: Event) -> str:
    return "" if event["reason"] == event["outcome"] else str(event["reason"]).replace("full_miss", "no entry under this key")


def assemble_cuda_graphs(events: Iterable[Event]) -> list[CudaGraphEvent]:
    """What happened when CUDA graphs were requested; equal events are counted in one record."""
    records: dict[tuple[str | None, CudaGraphOutcome, str, Direction], CudaGraphEvent] = {}
    skipped = set()
    for event in events:
        if event["kind"] != "cuda graph":
            continue
        record = _record(event)
        if event["outcome"] == "SKIPPED":
            skipped.add(event["compilation"])
        elif event["outcome"] == "DISABLED" and event["compilation"] in skipped:
            continue  # the skip itself was recorded, with its reason
        key = (record.compilation, record.outcome, record.reason, record.direction)
        known = records.get(key)
        records[key] = record if known is None else replace(known, times=known.times + 1)
    return list(records.values())


def _record(event: Event) -> CudaGraphEvent:
    outcome = CudaGraphOutcome.SKIPPED if event["outcome"] == "DISABLED" else CudaGraphOutcome[event["outcome"]]
    text = str(event["reason"])
    if outcome is CudaGraphOutcome.NO_EFFECT:
        text = _CPU_REASON.format(devices=" and ".join(event.get("devices") or ["no device"]))
    elif event["outcome"] == "DISABLED" and not text:
        text = "no part of the graph can be recorded"
    reason = text.partition("Found from")[0].strip().rstrip(".")
    return CudaGraphEvent(
        compilation=event["compilation"],
        outcome=outcome,
        reason=reason,
        direction=_DIRECTIONS.get(event.get("backward"), Direction.UNKNOWN),
        location=Stack(parse_stack(text)).user_line,
    )
