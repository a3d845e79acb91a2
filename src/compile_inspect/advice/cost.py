"""The cost of each graph break: operations on both sides, kernels that cannot be fused across it, frames left to Python."""

from __future__ import annotations

from compile_inspect.records import CompilationOutcome, GraphBreak, Inspection
from compile_inspect.records.compilations import first_compilation_id
from compile_inspect.records.cost import BreakCost


def break_cost(inspection: Inspection, cause: GraphBreak) -> BreakCost:
    """The cost of one cause per call, in the newest version of every frame.

    torch compiles the code after a break as a function named after the line of the break.
    """
    newest = list({first_compilation_id(item.id): item for item in inspection.compilations}.values())
    hit = [item for item in newest if item.id in cause.compilations]
    lines = {(place.file, place.line) for place in (cause.location, cause.own_location) if place is not None}
    behind = [
        item
        for item in newest
        if item.is_resume and any(item.file == file and item.function.endswith(f"_at_{line}") for file, line in lines)
    ]
    sides = {item.id for item in (*hit, *behind)}
    return BreakCost(
        before=sum(item.graph_calls for item in hit),
        after=sum(item.graph_calls for item in behind if item.id not in cause.compilations),
        kernels=sum(len(item.kernels) for item in inspection.lowerings if item.compilation in sides),
        frames=sum(item.outcome is CompilationOutcome.SKIPPED for item in hit),
    )
