"""Call times of every variant: a table and bars for every size, and a plot over a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection
from compile_inspect.records.timing import Measurement, MeasurementWarning, Timing, TimingPoint
from compile_inspect.reporters import conclusions
from compile_inspect.reporters import timings as words
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading, print_line, print_paragraph
from compile_inspect.reporters.text.plots import Line, bar, encoding_of, line_plot
from compile_inspect.reporters.text.safe_text import plain
from compile_inspect.reporters.text.tables import add_row, new_table, print_table
from compile_inspect.wording.plain import enumerate_some, one_line
from compile_inspect.wording.quantities import seconds, sizes

_MAX_POINTS = 8
_BAR_WIDTH = 40


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print every timing in a capture."""
    if not inspection.timings:
        print_empty(console, inspection, "No timings: `compile-inspect bench --capture FILE` adds them to a capture.")
        return
    for timing in inspection.timings:
        print_timing(timing, console, options)


def print_timing(timing: Timing, console: Console, options: ShowOptions) -> None:
    """Print one timing: its tables, the plot over its sizes, and warnings about the measurements."""
    title, *details = words.heading(timing)
    print_heading(console, title, *(detail for detail in details if detail))
    visible = options.first(timing.points, _MAX_POINTS)
    for point in visible:
        _print_point(point, console, alone=len(timing.points) == 1)
    print_folded(console, len(timing.points) - len(visible), "size")
    _print_lines(timing, console)
    for note in words.build_notes(timing):
        print_paragraph(console, note, indent="  ", bullet="- ", style="dim")
    for warning in words.all_warnings(timing):
        sentence = f"{words.warning_name(warning)} ({_variants_with(timing, warning)}): {warning.value}"
        print_paragraph(console, sentence, indent="  ", bullet="- ", style="dim")
    if any(
        item.speedup and item.speedup.low <= 1 <= item.speedup.high for point in timing.points for item in point.measurements
    ):
        print_paragraph(console, "?: no difference from eager beyond the noise", indent="  ", bullet="- ", style="dim")
    console.print()
    print_paragraph(console, conclusions.conclude_timing(timing), style="bold")
    console.print()


def _variants_with(timing: Timing, warning: MeasurementWarning) -> str:
    """The variants that a warning is about."""
    measured = [item for point in timing.points for item in point.measurements if item.summary is not None]
    names = dict.fromkeys(item.variant for item in measured if warning in item.warnings)
    return "all" if len(names) == len({item.variant for item in measured}) > 1 else enumerate_some(names)


def _print_point(point: TimingPoint, console: Console, *, alone: bool) -> None:
    if point.sizes:
        print_heading(console, sizes(point.sizes), *point.inputs[:4], indent="  ")
    ran = [item for item in point.measurements if item.summary is not None]
    best = conclusions.choose(point).variant  # the lowest median may be due to chance
    if ran:
        # Warnings come with their sentences below: in the table they would take the width of all else.
        name, *numbers, _warnings = words.COLUMNS
        table = new_table(name, *(f">{column}" for column in numbers))
        for item in ran:
            style = "bold green" if item is best and len(ran) > 1 else ""
            add_row(table, *(plain(cell, style) for cell in words.cells(item)[:-1]))
        print_table(console, table)
    for item in point.measurements:
        if item.summary is None:
            line = Text(f"  {one_line(item.variant)} cannot run: ", style="yellow").append(one_line(item.refusal), style="dim")
            print_line(console, line)
    console.print()
    if alone:
        _print_bars(ran, console)


def _print_bars(ran: Sequence[Measurement], console: Console) -> None:
    medians = {one_line(item.variant): item.summary.median for item in ran if item.summary}
    longest = max(medians.values(), default=0.0)
    if len(medians) < 2 or not (0 < longest < math.inf):
        return
    width = max(map(len, medians))
    for name, median in medians.items():
        line = Text(f"  {name.ljust(width)}  ")
        line.append(bar(median / longest, _BAR_WIDTH, encoding_of(console)), style="blue")
        line.append(f" {seconds(median)}")
        console.print(line, soft_wrap=True)
    console.print()


def _print_lines(timing: Timing, console: Console) -> None:
    """The medians over the sizes of a sweep with one axis."""
    axes = {tuple(point.sizes) for point in timing.points}
    if len(timing.points) < 2 or len(axes) != 1 or len(next(iter(axes))) != 1:
        return
    names = dict.fromkeys(item.variant for point in timing.points for item in point.measurements if item.summary)
    lines = []
    for name in names:
        points = []
        for point in timing.points:
            item = point.of(name)
            if item is not None and item.summary is not None and 0 < item.summary.median < math.inf:
                points.append((next(iter(point.sizes.values())), item.summary.median))
        lines.append(Line(one_line(name), tuple(points)))
    width, label = min(console.width - 4, 76), one_line(next(iter(axes))[0])
    for row in line_plot(lines, width=width, label=label, encoding=encoding_of(console)):
        console.print(Text("  ").append_text(row), soft_wrap=True)
    console.print()
