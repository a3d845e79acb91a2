"""Recompiles: a timeline for each function, with the guard that failed."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Compilation, GuardFailure, Inspection, Recompile
from compile_inspect.reporters.counts import count as count_records
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_heading, print_paragraph
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.causes import by_function, change, limit_sentence, short_reason
from compile_inspect.wording.compilations import by_identifier, function_name
from compile_inspect.wording.locations import place, where
from compile_inspect.wording.quantities import count, seconds

_MAX_ROWS = 20


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print the recompiles of every function, then the limits that were reached."""
    if not inspection.recompiles and not inspection.limits:
        unexplained = count_records(inspection).recompiles
        sentence = "No recompiles: no guard failed for any compiled frame."
        if unexplained:  # the compile ids show it, even where no reason was recorded
            sentence = f"{count(unexplained, 'recompile')} happened, but no reason was recorded."
        print_empty(console, inspection, sentence)
        return
    compilations = by_identifier(inspection)
    for (function, file, line), recompiles in by_function(inspection.recompiles).items():
        details = [place(file, line), count(len(recompiles), "recompile")]
        compile_seconds = sum(_seconds(compilations.get(item.compilation)) for item in recompiles)
        if compile_seconds:
            details.append(f"{seconds(compile_seconds)} compile time")
        print_heading(console, function_name(function), *details)
        _print_timeline(recompiles, compilations, console, options)
        console.print()
    if inspection.limits:
        print_heading(console, "Limits reached")
        for limit in inspection.limits:
            print_paragraph(console, limit_sentence(limit), indent="  ", bullet="- ", style="yellow")
        console.print()


def _seconds(compilation: Compilation | None) -> float:
    if compilation is None:
        return 0.0
    return (compilation.seconds or 0.0) + (compilation.backward_seconds or 0.0)


def _print_timeline(
    recompiles: list[Recompile], compilations: dict[str, Compilation], console: Console, options: ShowOptions
) -> None:
    # The last ones show best what the program does now.
    visible = options.first(recompiles[::-1], _MAX_ROWS)[::-1]
    if len(visible) < len(recompiles):
        folded = count(len(recompiles) - len(visible), "earlier recompile")
        console.print(Text(f"  … {folded} (use --all)", style="dim"), soft_wrap=True)
    table = new_table("Id", "Version", "Variable", "Change", "Guard that failed", "Line", ">Time")
    hidden = 0
    for recompile in visible:
        took = seconds(_seconds(compilations.get(recompile.compilation)) or None)
        failures = recompile.failures if options.all else recompile.failures[:1]
        hidden += len(recompile.failures) - len(failures)
        if not failures:
            add_row(table, recompile.compilation, "-", "-", "-", "torch gave no reason", "-", took)
        for index, failure in enumerate(failures):
            # Further rows belong to the same compilation: guards of older versions.
            add_row(
                table,
                *(recompile.compilation if index == 0 else "", failure.earlier_version or "-", failure.variable or "-"),
                *(change(failure) if _has_values(failure) else "-", short_reason(failure) or "-"),
                *(plain(where(failure.location), "cyan"), took if index == 0 else ""),
            )
    print_table(console, table)
    if hidden:
        guards = count(hidden, "failed guard")
        console.print(Text(f"  + {guards} of older versions (use --all)", style="dim"), soft_wrap=True)


def _has_values(failure: GuardFailure) -> bool:
    return failure.expected is not None or failure.actual is not None
