"""Assemble the events of a journal into an `Inspection`, with pure functions and without torch.

Each kind of record has a module that reads the events it needs. If one of them fails, the others still succeed, and the capture
lists what is missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from compile_inspect.assemble.breaks import assemble_breaks
from compile_inspect.assemble.compilations import assemble_bytecode, assemble_compilations, assemble_phases
from compile_inspect.assemble.compiled_share import assemble_compiled_share
from compile_inspect.assemble.failures import assemble_failures
from compile_inspect.assemble.graphs import assemble_graphs
from compile_inspect.assemble.guards import assemble_guards
from compile_inspect.assemble.lowerings import assemble_lowerings
from compile_inspect.assemble.recompiles import assemble_limits, assemble_recompiles
from compile_inspect.assemble.runtime import assemble_caches, assemble_cuda_graphs
from compile_inspect.assemble.specializations import assemble_specializations
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Environment, Inspection, MissingEvidence, Process
from compile_inspect.serialization import from_data

Part = TypeVar("Part")

_EVENT_FIELDS = frozenset({"kind", "compilation", "attempt", "time", "thread"})


class _Parts:
    """Builds the parts of an inspection; a part that fails is recorded as missing, and does not affect the others."""

    def __init__(self) -> None:
        self.missing: Counter[tuple[str, str]] = Counter()

    def build(self, name: str, function: Callable[..., Iterable[Part]], *arguments: Any) -> tuple[Part, ...]:
        try:
            return tuple(function(*arguments))
        except Exception as error:
            self.missing[name, f"the events could not be read: {type(error).__name__}: {error}"] += 1
            return ()


def assemble(events: Iterable[Event], header: Event, *, complete: bool) -> Inspection:
    """Build the inspection from the events of a journal."""
    all_events = [event for event in events if isinstance(event.get("kind"), str)]
    of_kind: dict[str, list[Event]] = defaultdict(list)
    for event in all_events:
        of_kind[event["kind"]].append(event)
    parts, stacks = _Parts(), StackTable()
    parts.build("stacks", _define_stacks, of_kind["stack"], stacks)
    for event in of_kind["missing"]:
        parts.missing[str(event.get("collector")), str(event.get("reason"))] += 1

    compilations = parts.build("compilations", assemble_compilations, all_events, stacks)
    by_id = {item.id: item for item in compilations}
    call_stacks = {item.id: item.call_stack for item in compilations if item.call_stack is not None}
    graphs = parts.build("graphs", assemble_graphs, all_events, stacks, call_stacks)
    lowerings = parts.build("kernels", assemble_lowerings, all_events, stacks, call_stacks, graphs)
    guards = parts.build("guards", assemble_guards, all_events, stacks)
    breaks = parts.build("graph breaks", assemble_breaks, all_events, stacks, call_stacks)
    shares = parts.build("share compiled", assemble_compiled_share, of_kind["graph break"], by_id, graphs, stacks)
    environments = parts.build("environment", _environments, of_kind["environment"])
    return Inspection(
        environment=environments[0] if environments else Environment(),
        process=_process(header, of_kind["end"]),
        complete=complete,
        notes=tuple(dict.fromkeys(str(event.get("text")) for event in of_kind["note"])),
        compilations=compilations,
        failures=parts.build("failures", assemble_failures, of_kind["failure"], by_id, stacks),
        compiled_share=shares[0] if shares else None,
        graphs=(*graphs, *(graph for _, graph in lowerings)),
        breaks=breaks,
        guards=guards,
        specializations=parts.build("specializations", assemble_specializations, of_kind["symbol"], stacks),
        recompiles=parts.build("recompiles", assemble_recompiles, all_events, by_id, guards),
        limits=parts.build("recompile limits", assemble_limits, all_events, by_id),
        lowerings=tuple(lowering for lowering, _ in lowerings),
        phases=parts.build("phases", assemble_phases, of_kind["phase"]),
        caches=parts.build("caches", assemble_caches, of_kind["cache"]),
        cuda_graphs=parts.build("cuda graphs", assemble_cuda_graphs, of_kind["cuda graph"]),
        bytecode=parts.build("bytecode", assemble_bytecode, of_kind["bytecode"]),
        stacks=stacks.all(),
        # Last, because every part can add missing evidence.
        missing_evidence=tuple(
            MissingEvidence(collector, reason, times) for (collector, reason), times in parts.missing.items()
        ),
    )


def _define_stacks(events: Iterable[Event], stacks: StackTable) -> Iterable[int]:
    for event in events:
        stacks.define(event["index"], event["stack"])
    return ()


def _environments(events: Iterable[Event]) -> Iterable[Environment]:
    for event in events:
        yield from_data(Environment, {key: value for key, value in event.items() if key not in _EVENT_FIELDS})


def _process(header: Event, ends: list[Event]) -> Process:
    return Process(
        pid=int(header.get("pid", 0)),
        rank=header.get("rank"),
        session=str(header.get("session", "")),
        command=tuple(map(str, header.get("command", ()))),
        started=float(header.get("started", 0.0)),
        ended=ends[0]["time"] if ends else None,
        recorder=str(header.get("recorder", "")),
    )
