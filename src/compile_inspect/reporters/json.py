"""A section of a capture as self-contained JSON: stacks are written out, not referred to by number.

Fields at their default are left out, as in the capture file. Only the section `code` contains generated code, and the
printed form and full stacks of graph nodes need `all`, because they would be most of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from compile_inspect.errors import InspectError
from compile_inspect.records import SCHEMA_VERSION, Inspection, Location
from compile_inspect.reporters import SECTIONS
from compile_inspect.reporters.counts import count
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.selection import select
from compile_inspect.serialization import to_data

Data = dict[str, Any]

_CODE_FIELDS = ("id", "compilation", "direction", "code", "code_path", "from_cache")


def section_data(inspections: Sequence[Inspection], section: str, options: ShowOptions, *, files: Sequence[str] = ()) -> Data:
    """One section of every process, ready for `json.dumps`.

    >>> section_data([Inspection()], "breaks", ShowOptions())["processes"][0]["breaks"]
    []
    """
    if section not in SECTIONS:
        raise InspectError(f"there is no section {section!r}; the sections are {', '.join(SECTIONS)}")
    processes = []
    for index, inspection in enumerate(select(inspections, options.compilation)):
        processes.append(
            {
                "pid": inspection.process.pid,
                "rank": inspection.process.rank,
                "file": files[index] if len(files) == len(inspections) else None,
                "complete": inspection.complete,
                "missing": to_data(inspection.missing),
                section: _CONTENT[section](_Resolver(inspection), options),
            }
        )
    data = {"schema": SCHEMA_VERSION, "section": section, "processes": processes}
    return {key: _finite(value) for key, value in data.items()}


class _Resolver:
    """Records of one inspection as data, with stack numbers replaced by stacks."""

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection
        self._stacks: dict[int, list[Data]] = {}

    def stack(self, index: int | None) -> list[Data] | None:
        if index is None or not 0 <= index < len(self.inspection.stacks):
            return None
        if index not in self._stacks:
            self._stacks[index] = to_data(self.inspection.stacks[index].locations)
        return self._stacks[index]

    def user_line(self, index: int | None) -> Data | None:
        if index is None or not 0 <= index < len(self.inspection.stacks):
            return None
        line: Location | None = self.inspection.stacks[index].user_line
        return to_data(line) if line is not None else None

    def records(self, records: Iterable[Any], without: tuple[str, ...] = ()) -> list[Data]:
        return [self.record(record, without) for record in records]

    def record(self, record: Any, without: tuple[str, ...] = ()) -> Data:
        data: Data = {key: value for key, value in to_data(record).items() if key not in without}
        for name in ("stack", "call_stack"):
            if name in data:
                data[name] = self.stack(data[name])
        if "stacks" in data:
            data["lines"] = [line for index in data["stacks"] if (line := self.user_line(index)) is not None]
            data["stacks"] = [frames for index in data["stacks"] if (frames := self.stack(index)) is not None]
        return data


def _summary(resolver: _Resolver, options: ShowOptions) -> Data:
    inspection = resolver.inspection
    counts = count(inspection)
    return {
        "compilations": counts.compilations,
        "failed": counts.failed,
        "failures": resolver.records(inspection.failures),
        "skipped": counts.skipped,
        "unfinished": counts.unfinished,
        "graphs": counts.graphs,
        "breaks": counts.breaks,
        "break_hits": counts.break_hits,
        "recompiles": counts.recompiles,
        "limits": to_data(inspection.limits),
        "compile_seconds": counts.compile_seconds,
        "kernels": counts.kernels,
        "cache": {outcome.name: times for outcome, times in counts.cache.items()},
        "cudagraphs": to_data(inspection.cuda_graphs),
        "environment": to_data(inspection.environment),
        "process": to_data(inspection.process),
        "notes": to_data(inspection.notes),
        "by_compilation": resolver.records(options.first(inspection.compilations)),
    }


def _graphs(resolver: _Resolver, options: ShowOptions) -> list[Data]:
    graphs = []
    for graph in options.first(resolver.inspection.graphs):
        data = to_data(graph)
        for node in data["nodes"]:
            index = node.pop("stack", None)
            if (line := resolver.user_line(index)) is not None:
                node["user_line"] = line
            if options.all and (frames := resolver.stack(index)) is not None:
                node["stack"] = frames
        if not options.all:
            data.pop("text", None)
        graphs.append({**data, "call_counts": graph.call_counts})
    return graphs


def _kernels(resolver: _Resolver, options: ShowOptions) -> list[Data]:
    lowerings = []
    for lowering in options.first(resolver.inspection.lowerings):
        data = resolver.record(lowering, without=("code", "kernels"))
        lowerings.append({**data, "kernels": resolver.records(lowering.kernels)})
    return lowerings


_CONTENT: dict[str, Callable[[_Resolver, ShowOptions], Any]] = {
    "summary": _summary,
    "failures": lambda resolver, options: resolver.records(options.first(resolver.inspection.failures)),
    "graphs": _graphs,
    "breaks": lambda resolver, options: resolver.records(options.first(resolver.inspection.breaks)),
    "guards": lambda resolver, options: resolver.records(options.first(resolver.inspection.guards)),
    "recompiles": lambda resolver, options: {
        "recompiles": resolver.records(options.first(resolver.inspection.recompiles)),
        "limits": resolver.records(resolver.inspection.limits),
    },
    "kernels": _kernels,
    "code": lambda resolver, options: [
        {name: value for name, value in to_data(lowering).items() if name in _CODE_FIELDS}
        for lowering in options.first(resolver.inspection.lowerings)
    ],
    "time": lambda resolver, options: {
        "compile_seconds": resolver.inspection.compile_seconds,
        "phases": resolver.records(options.first(resolver.inspection.phases)),
    },
    "cache": lambda resolver, options: resolver.records(options.first(resolver.inspection.caches)),
    "cudagraphs": lambda resolver, options: resolver.records(options.first(resolver.inspection.cuda_graphs)),
    "bytecode": lambda resolver, options: resolver.records(options.first(resolver.inspection.bytecode)),
    "timing": lambda resolver, options: resolver.records(options.first(resolver.inspection.timings)),
}


def _finite(value: Any) -> Any:
    """Replace infinities and NaN, which JSON does not have, with null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
