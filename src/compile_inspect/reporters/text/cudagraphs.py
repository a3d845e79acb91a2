"""CUDA graphs: which compiled graphs use one, and why the others do not."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import CudaGraphOutcome, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_warning
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.compilations import by_identifier, function_name
from compile_inspect.wording.locations import where

_MAX_EVENTS = 40
_OUTCOMES = {
    CudaGraphOutcome.USED: ("used", "green"),
    CudaGraphOutcome.RECORDED: ("recorded", "green"),
    CudaGraphOutcome.SKIPPED: ("skipped", "yellow"),
    CudaGraphOutcome.NO_EFFECT: ("no effect", "yellow"),
}


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print a row for every request for CUDA graphs and its outcome."""
    if not inspection.cuda_graphs:
        sentence = "No CUDA graphs were requested (mode='reduce-overhead' and 'max-autotune' request them)."
        print_empty(console, inspection, sentence)
        return
    if any(event.outcome is CudaGraphOutcome.NO_EFFECT for event in inspection.cuda_graphs):
        print_warning(console, "CUDA graphs were requested, without effect on a CPU: no CUDA device is involved.")
        console.print()
    compilations = by_identifier(inspection)
    visible = options.first(inspection.cuda_graphs, _MAX_EVENTS)
    print_heading(console, "CUDA graphs")
    table = new_table("Id", "Function", "Direction", "Outcome", ">Times", "Reason", "Line")
    for event in visible:
        compilation = compilations.get(event.compilation or "")
        outcome, style = _OUTCOMES[event.outcome]
        add_row(
            table,
            event.compilation or "-",
            function_name(compilation.function) if compilation else "-",
            event.direction.value,
            Text(outcome, style=style),
            f"{event.times:,}",
            event.reason or "-",
            plain(where(event.location), "cyan"),
        )
    print_table(console, table)
    print_folded(console, len(inspection.cuda_graphs) - len(visible), "event")
    console.print()
