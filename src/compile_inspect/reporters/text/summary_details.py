"""Below the verdict: the most important findings of one process."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from compile_inspect.advice.wrappers import wrapper_remedies
from compile_inspect.records import CudaGraphEvent, CudaGraphOutcome, Inspection
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import (
    PARTIAL,
    print_folded,
    print_heading,
    print_missing,
    print_paragraph,
    print_warning,
)
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.causes import by_function, cause, limit_sentence
from compile_inspect.wording.compilations import function_name
from compile_inspect.wording.failures import sentence as failure_sentence
from compile_inspect.wording.locations import place, where
from compile_inspect.wording.plain import one_line, shorten
from compile_inspect.wording.quantities import count

_MAX_ENTRIES = 3


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print failures, graph breaks, recompiles, limits, CUDA graphs, missing evidence and notes, if there are any."""
    parts: tuple[Callable[[Inspection, Console, ShowOptions], bool], ...] = (
        _failures,
        _breaks,
        _remedies,
        _recompiles,
        _limits,
        _cuda_graphs,
        _missing,
        _notes,
    )
    for part in parts:
        if part(inspection, console, options):
            console.print()
    if not inspection.complete:
        print_warning(console, PARTIAL)
        console.print()


def _failures(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.failures:
        return False
    print_heading(console, "Failed")
    visible = options.first(inspection.failures, _MAX_ENTRIES)
    for failure in visible:
        print_paragraph(console, failure_sentence(failure, inspection), indent="  ", bullet="- ")
    print_folded(console, len(inspection.failures) - len(visible), "failure")
    return True


def _breaks(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.breaks:
        return False
    print_heading(console, "Graph breaks")
    # Numbered as in the section itself, most frequent first.
    ranked = sorted(enumerate(inspection.root_breaks, 1), key=lambda item: -item[1].hits)
    visible = options.first(ranked, _MAX_ENTRIES)
    table = new_table(">#", "Line", "Kind", "GB id", ">Hits", "Code")
    for number, item in visible:
        location = item.own_location or item.location
        add_row(
            table,
            str(number),
            Text(where(location), style="cyan"),
            item.kind,
            plain(item.identifier or "-", "dim"),
            f"{item.hits:,}",
            plain(shorten(location.code if location else "", 60), "dim"),
        )
    print_table(console, table)
    print_folded(console, len(ranked) - len(visible), "graph break")
    following_breaks = len(inspection.breaks) - len(ranked)
    if following_breaks:
        print_paragraph(
            console,
            f"{count(following_breaks, 'more graph break')} in code that these left to Python.",
            indent="  ",
            style="dim",
        )
    return True


def _remedies(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    sentences = [*wrapper_remedies(inspection)]
    if sentences:
        print_heading(console, "What to do")
        for sentence in sentences:
            print_paragraph(console, one_line(sentence), indent="  ", bullet="- ")
    return bool(sentences)


def _recompiles(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.recompiles:
        return False
    print_heading(console, "Recompiles")
    functions = sorted(by_function(inspection.recompiles).items(), key=lambda item: -len(item[1]))
    visible = options.first(functions, _MAX_ENTRIES)
    table = new_table("Function", ">Times", "Latest", "Latest cause", "Line")
    for (function, file, line), recompiles in visible:
        latest = recompiles[-1]
        failure = latest.latest_failure
        add_row(
            table,
            f"{function_name(function)} ({place(file, line)})",
            f"{len(recompiles):,}",
            latest.compilation,
            shorten(cause(failure), 160),
            Text(where(failure.location if failure else None), style="cyan"),
        )
    print_table(console, table)
    print_folded(console, len(functions) - len(visible), "function")
    return True


def _limits(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.limits:
        return False
    print_heading(console, "Limits reached")
    visible = options.first(inspection.limits, _MAX_ENTRIES)
    for limit in visible:
        print_paragraph(console, limit_sentence(limit), indent="  ", bullet="- ")
    print_folded(console, len(inspection.limits) - len(visible), "limit")
    return True


def cuda_graph_sentence(event: CudaGraphEvent, times: int) -> str:
    """What happened, in one sentence.

    >>> cuda_graph_sentence(CudaGraphEvent("0/0", CudaGraphOutcome.NO_EFFECT), 1)
    'Requested, without effect on a CPU: no CUDA device is involved (1 time).'
    """
    if event.outcome is CudaGraphOutcome.NO_EFFECT:
        sentence = "Requested, without effect on a CPU: no CUDA device is involved"
    else:
        sentence = event.outcome.value.capitalize().replace("cuda", "CUDA")
    reason = f": {one_line(event.reason)}" if event.reason else ""
    return f"{sentence} ({count(times, 'time')}){reason}."


def _cuda_graphs(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.cuda_graphs:
        return False
    print_heading(console, "CUDA graphs")
    times: dict[tuple[CudaGraphOutcome, str], int] = {}
    examples: dict[tuple[CudaGraphOutcome, str], CudaGraphEvent] = {}
    for event in inspection.cuda_graphs:
        key = (event.outcome, event.reason)
        times[key] = times.get(key, 0) + event.times
        examples.setdefault(key, event)
    ranked = sorted(examples, key=lambda key: -times[key])
    visible = options.first(ranked, _MAX_ENTRIES)
    for key in visible:
        print_paragraph(console, cuda_graph_sentence(examples[key], times[key]), indent="  ", bullet="- ")
    print_folded(console, len(ranked) - len(visible), "reason")
    return True


def _missing(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.missing_evidence and inspection.environment.torch_supported:
        return False
    print_heading(console, "Missing evidence")
    if not inspection.environment.torch_supported:
        sentence = f"torch {inspection.environment.torch} is outside the range of versions that compile-inspect supports."
        print_paragraph(console, sentence, indent="  ", bullet="- ")
    print_missing(console, inspection.missing_evidence)
    return True


def _notes(inspection: Inspection, console: Console, options: ShowOptions) -> bool:
    if not inspection.notes:
        return False
    print_heading(console, "Notes")
    for note in inspection.notes:
        print_paragraph(console, note, indent="  ", bullet="- ")
    return True
