"""One capture as the data of a page, reduced to the page's limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compile_inspect.records import Graph, Inspection, Stage
from compile_inspect.records.accidents import Accident
from compile_inspect.records.fixes import Finding, Proposal
from compile_inspect.records.recompile_causes import RecompileCause
from compile_inspect.reporters.html import findings as findings_data
from compile_inspect.reporters.html import measurements
from compile_inspect.reporters.html.graphs import graphs_of, lowerings_of
from compile_inspect.reporters.html.places import Places, stacks_of
from compile_inspect.reporters.html.sources import sources_of
from compile_inspect.reporters.html.texts import paragraph, words
from compile_inspect.reporters.html.verdict import verdict_of
from compile_inspect.wording.quantities import count

Data = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """How much of a capture goes into a page; None means all of it."""

    nodes: int | None = 100_000
    """Total nodes of all graphs; graphs of the first compilations take precedence."""
    code_lines: int | None = 100_000
    """Lines of generated code, over all lowerings."""
    phases: int = 5_000
    guards: int = 5_000
    rest: str = "`compile-inspect report --whole` includes them; `compile-inspect show` shows the capture in the terminal."
    """How to see what was left out."""

    @classmethod
    def none(cls) -> Limits:
        """Everything, however large."""
        return cls(None, None, 10**9, 10**9)


@dataclass(frozen=True)
class CaptureReport:
    """A capture with its findings: the content of a page."""

    label: str
    inspection: Inspection
    findings: Sequence[Finding] = ()
    accidents: Sequence[Accident] = ()
    diff: Callable[[Proposal], str] = field(default=lambda _: "")
    notes: Sequence[str] = ()
    causes: Sequence[RecompileCause] = ()


def capture_data(report: CaptureReport, limits: Limits) -> Data:
    """The data of one capture."""
    inspection = report.inspection
    places, left_out = Places(), []
    graphs, dropped = _select_graphs(inspection, limits)
    left_out += dropped
    with_code = limits.code_lines is None or _code_lines(inspection) <= limits.code_lines
    if not with_code:
        left_out.append(f"the generated code ({_code_lines(inspection):,} lines)")
    time, phases = measurements.time_of(inspection, most=limits.phases)
    if phases:
        left_out.append(f"{count(phases, 'short phase')} of compile time")
    guards = findings_data.guards_of(inspection, places)
    if len(guards) > limits.guards:
        left_out.append(f"guards on {len(guards) - limits.guards:,} variables")
    data: Data = {
        "label": words(report.label),
        "verdict": verdict_of(inspection, report.findings, report.accidents, report.causes),
        "left_out": [*left_out, limits.rest] if left_out else [],
        "complete": inspection.complete,
        "notes": [paragraph(note) for note in (*inspection.notes, *report.notes)],
        "missing": [
            {"collector": words(item.collector), "reason": paragraph(item.reason), "times": item.times}
            for item in inspection.missing
        ],
        "environment": _environment(inspection),
        "sources": sources_of(inspection, places),
        "stacks": stacks_of(inspection, places),
        "compilations": measurements.compilations_of(inspection, places),
        "graphs": graphs_of(inspection, graphs),
        "lowerings": lowerings_of(inspection, graphs, with_code=with_code),
        "breaks": findings_data.breaks_of(inspection, report.findings, report.diff, places),
        "guards": guards[: limits.guards],
        "accidents": findings_data.accidents_of(report.accidents, places),
        "specializations": findings_data.specializations_of(inspection, places),
        "recompiles": findings_data.recompiles_of(inspection, places),
        "recompile_causes": findings_data.recompile_causes_of(report.causes),
        "limits": findings_data.limits_of(inspection, places),
        "time": time,
        "timings": measurements.timings_of(inspection.timings),
        "agreements": measurements.agreements_of(inspection.agreements, places),
        "caches": measurements.caches_of(inspection),
        "cuda_graphs": measurements.cuda_graphs_of(inspection, places),
    }
    return {**data, "paths": places.paths()}


_STAGES_BY_IMPORTANCE = (Stage.DYNAMO, Stage.POST_GRAD, Stage.FORWARD, Stage.BACKWARD, Stage.INFERENCE, Stage.JOINT)
"""Stages by importance: the panes are linked through Dynamo's graph and the lowered graph."""


def _select_graphs(inspection: Inspection, limits: Limits) -> tuple[list[Graph], list[str]]:
    """Graphs up to the limit of nodes, and what was left out; a joint graph is omitted if its two parts are present."""
    split = {graph.compilation for graph in inspection.graphs if graph.stage is Stage.FORWARD}
    candidates = [graph for graph in inspection.graphs if graph.stage is not Stage.JOINT or graph.compilation not in split]
    if limits.nodes is None or sum(len(graph.nodes) for graph in candidates) <= limits.nodes:
        return candidates, []
    order = list(dict.fromkeys(graph.compilation for graph in candidates))
    ranked = sorted(candidates, key=lambda graph: (order.index(graph.compilation), _STAGES_BY_IMPORTANCE.index(graph.stage)))
    selected: set[int] = set()
    nodes, dropped = 0, []
    for graph in ranked:
        # At least one graph is always shown.
        if selected and nodes + len(graph.nodes) > limits.nodes:
            dropped.append(graph)
        else:
            selected.add(id(graph))
            nodes += len(graph.nodes)
    names = [f"{graph.stage.value} of {words(graph.compilation or 'no compilation')}" for graph in dropped]
    rest = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return [graph for graph in candidates if id(graph) in selected], [
        f"{count(len(dropped), 'graph')} ({', '.join(names[:6])}{rest})"
    ]


def _code_lines(inspection: Inspection) -> int:
    return sum(lowering.code.count("\n") for lowering in inspection.lowerings)


def _environment(inspection: Inspection) -> list[Data]:
    environment, process = inspection.environment, inspection.process
    machine = {
        "torch": environment.torch,
        "Python": environment.python,
        "Platform": environment.platform,
        "CPU": environment.cpu,
        "Devices": ", ".join(environment.devices),
        "Threads": "" if environment.threads is None else str(environment.threads),
        "Command": " ".join(process.command),
        "Process": process.label,
        "Recorded by": process.recorder and f"compile-inspect {process.recorder}",
    }
    groups = (
        ("Machine", machine),
        ("Packages", environment.packages),
        ("Environment variables", environment.variables),
        ("torch settings that differ from the default", environment.configuration),
    )
    return [
        {"title": title, "rows": [[words(name), words(value)] for name, value in rows.items() if value not in ("", None)]}
        for title, rows in groups
        if rows
    ]
