"""Compile time: a tree for each compilation, and the phases with the most time of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from compile_inspect.records import Inspection, Phase
from compile_inspect.reporters.options import ShowOptions
from compile_inspect.reporters.text.messages import print_empty, print_folded, print_heading
from compile_inspect.reporters.text.phases import Branch, tree, walk
from compile_inspect.reporters.text.plots import bar, encoding_of
from compile_inspect.wording.compilations import by_identifier, grouped, title
from compile_inspect.wording.plain import one_line
from compile_inspect.wording.quantities import TIMES, count, percent, seconds

_MAX_COMPILATIONS = 5
_MAX_PHASES = 10
_MIN_FRACTION = 0.01
_BAR_WIDTH = 20
_MAX_DEPTH = 40


def render(inspection: Inspection, console: Console, options: ShowOptions) -> None:
    """Print a tree of phases for the slowest compilations, then the phases with the most time of their own."""
    if not inspection.phases:
        print_empty(console, inspection, "No compile times: torch's timers were not recorded.")
        return
    # A NaN in a damaged capture cannot be added up or drawn.
    timed = [phase for phase in inspection.phases if math.isfinite(phase.start + phase.seconds + phase.own_seconds)]
    trees = {identifier: tree(phases) for identifier, phases in grouped(timed, lambda phase: phase.compilation).items()}
    # Helper threads compile kernels while the compilation waits: their time is not the compilation's own.
    slowest = sorted(trees, key=lambda identifier: (identifier is None, -trees[identifier].seconds))
    visible = set(options.first(slowest, _MAX_COMPILATIONS))
    compilations = by_identifier(inspection)
    for identifier, root in trees.items():
        if identifier in visible:
            print_heading(console, *title(identifier, compilations, inspection), seconds(root.seconds))
            _print_tree(root, console, options)
            console.print()
    folded = [identifier for identifier in trees if identifier not in visible]
    if folded:
        nouns = ("compilation that took less time", "compilations that took less time")
        print_folded(console, sum(identifier is not None for identifier in folded), *nouns, indent="")
        if None in folded:
            console.print(f"… {seconds(trees[None].seconds)} outside any compilation (use --all)", style="dim")
        console.print()
    _print_top([phase for phase in timed if phase.compilation is not None] or timed, console, options)


def _print_tree(root: Branch, console: Console, options: ShowOptions) -> None:
    lines = list(walk(root, 0.0 if options.all else root.seconds * _MIN_FRACTION))
    labels = [_label(entry, depth) for depth, entry, _ in lines]
    width = max(map(len, labels), default=0)
    for label, (_, entry, duration) in zip(labels, lines, strict=True):
        folded = isinstance(entry, int)
        line = Text(f"  {label.ljust(width)}", style="dim" if folded else "")
        line.append(f"  {seconds(duration):>9}  {percent(duration, root.seconds):>5}  ")
        line.append(_bar(duration, root.seconds, console), style="blue")
        line.rstrip()
        console.print(line, soft_wrap=True)


def _label(entry: Branch | int, depth: int) -> str:
    indent = "  " * min(depth, _MAX_DEPTH)
    if isinstance(entry, int):
        return f"{indent}… {count(entry, 'shorter phase')} (use --all)"
    times = f" {TIMES} {entry.times:,}" if entry.times > 1 else ""
    return f"{indent}{one_line(entry.name)}{times}"


def _bar(part: float, whole: float, console: Console) -> str:
    return bar(part / whole, _BAR_WIDTH, encoding_of(console)) if whole > 0 else ""


def _print_top(phases: Sequence[Phase], console: Console, options: ShowOptions) -> None:
    own: dict[str, list[Phase]] = {}
    for phase in phases:
        own.setdefault(phase.name, []).append(phase)
    durations = {name: sum(phase.own_seconds for phase in members) for name, members in own.items()}
    total = sum(durations.values())
    if total <= 0:
        return
    ranked = sorted(durations, key=lambda name: -durations[name])
    visible = options.first(ranked, _MAX_PHASES)
    print_heading(console, "Phases by own time", f"{seconds(total)} in total")
    labels = [one_line(name) + (f" {TIMES} {len(own[name]):,}" if len(own[name]) > 1 else "") for name in visible]
    width = max(map(len, labels))
    for name, label in zip(visible, labels, strict=True):
        line = Text(f"  {label.ljust(width)}  {seconds(durations[name]):>9}  {percent(durations[name], total):>5}  ")
        line.append(_bar(durations[name], total, console), style="blue")
        line.rstrip()
        console.print(line, soft_wrap=True)
    print_folded(console, len(ranked) - len(visible), "phase")
    console.print()
