"""From the events of a journal to an `Inspection`: pure functions, no torch.

Each kind of record has a module that reads the events it needs. If one of them fails, the others still deliver
and the capture says what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from compile_inspect.assemble.breaks import assemble_breaks
from compile_inspect.assemble.compilations import assemble_bytecode, assemble_compilations, assemble_phases
from compile_inspect.assemble.graphs import assemble_graphs
from compile_inspect.assemble.guards import assemble_guards
from compile_inspect.assemble.lowerings import assemble_lowerings
from compile_inspect.assemble.recompiles import assemble_limits, assemble_recompiles
from compile_inspect.assemble.runtime import assemble_caches, assemble_cuda_graphs
from compile_inspect.assemble.stacks import StackTable
from compile_inspect.journal import Event
from compile_inspect.records import Environment, Inspection, Missing, Process
from compile_inspect.serialization import from_data

Part = TypeVar("Part")


def assemble(events: Iterable[Event], header: Event, *, complete: bool) -> Inspection:
    """Build the inspection that a journal tells."""
    listed = [event for event in events if isinstance(event.get("kind"), str)]
    stacks = StackTable()
    missing: Counter[tuple[str, str]] = Counter()
    ended: float | None = None
    described: Event = {}
    notes: list[str] = []
    for event in listed:
        if event["kind"] == "stack":
            stacks.define(event["index"], event["stack"])
        elif event["kind"] == "missing":
            missing[event["collector"], event["reason"]] += 1
        elif event["kind"] == "environment":
            described = {key: value for key, value in event.items() if key not in _EVENT_FIELDS}
        elif event["kind"] == "note":
            notes.append(str(event["text"]))
        elif event["kind"] == "end":
            ended = event["time"]

    def part(name: str, empty: Part, build: Callable[..., Part], *arguments: Any) -> Part:
        try:
            return build(*arguments)
        except Exception as error:
            missing[name, f"the events could not be read: {type(error).__name__}: {error}"] += 1
            return empty

    compilations = part("compilations", [], assemble_compilations, listed, stacks)
    by_id = {item.id: item for item in compilations}
    graphs = part("graphs", [], assemble_graphs, listed, stacks)
    lowerings, post_grad = part("kernels", ([], []), assemble_lowerings, listed, stacks, graphs)
    inspection = {
        "breaks": part("graph breaks", [], assemble_breaks, listed, stacks),
        "guards": part("guards", [], assemble_guards, listed, stacks),
        "recompiles": part("recompiles", [], assemble_recompiles, listed, by_id),
        "limits": part("recompile limits", [], assemble_limits, listed, by_id),
        "phases": part("phases", [], assemble_phases, listed),
        "caches": part("caches", [], assemble_caches, listed),
        "cuda_graphs": part("cuda graphs", [], assemble_cuda_graphs, listed),
        "bytecode": part("bytecode", [], assemble_bytecode, listed),
    }
    return Inspection(
        environment=part("environment", Environment(), from_data, Environment, described),
        process=_process(header, ended),
        complete=complete,
        missing=tuple(Missing(collector, reason, times) for (collector, reason), times in missing.items()),
        notes=tuple(dict.fromkeys(notes)),
        compilations=tuple(compilations),
        graphs=(*graphs, *post_grad),
        lowerings=tuple(lowerings),
        stacks=stacks.all(),
        **{name: tuple(records) for name, records in inspection.items()},
    )


_EVENT_FIELDS = frozenset({"kind", "compilation", "time", "thread"})


def _process(header: Event, ended: float | None) -> Process:
    return Process(
        pid=int(header.get("pid", 0)),
        rank=header.get("rank"),
        session=str(header.get("session", "")),
        command=tuple(header.get("command", ())),
        started=float(header.get("started", 0.0)),
        ended=ended,
        recorder=str(header.get("recorder", "")),
    )
